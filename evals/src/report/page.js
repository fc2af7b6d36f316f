(() => {
  'use strict';
  const root = document.documentElement;
  const button = document.getElementById('theme');
  const kept = {
    get() { try { return localStorage.getItem('report-theme'); } catch { return null; } },
    set(value) { try { localStorage.setItem('report-theme', value); } catch { /* storage is not available */ } },
  };
  const words = { system: 'system', light: 'light', dark: 'dark' };
  const show = (theme) => {
    if (theme === 'system') root.removeAttribute('data-theme'); else root.dataset.theme = theme;
    button.textContent = 'Colours: ' + words[theme];
    button.dataset.now = theme;
  };
  const first = kept.get();
  show(Object.hasOwn(words, first) ? first : 'system');
  button.hidden = false;
  button.addEventListener('click', () => {
    const all = Object.keys(words);
    const next = all[(all.indexOf(button.dataset.now) + 1) % all.length];
    show(next);
    kept.set(next);
  });

  const table = document.getElementById('all');
  const body = table.tBodies[0];
  const rows = Array.from(body.rows);
  const texts = rows.map((row) => row.textContent.toLowerCase());
  const field = (id) => document.getElementById(id);
  const filter = () => {
    const wanted = field('words').value.toLowerCase().split(/\s+/).filter(Boolean);
    const set = field('by-set').value, repo = field('by-repo').value, state = field('by-state').value;
    let shown = 0;
    rows.forEach((row, at) => {
      const data = row.dataset;
      const fits = (!set || data.set === set) && (!repo || data.repo === repo)
        && (!state || (state === 'differs' ? 'differs' in data : data.state === state))
        && wanted.every((word) => texts[at].includes(word));
      row.hidden = !fits;
      shown += fits ? 1 : 0;
    });
    field('shown').textContent = shown + ' of ' + rows.length;
  };
  const form = field('filters');
  form.hidden = false;
  form.addEventListener('input', filter);
  form.addEventListener('submit', (event) => event.preventDefault());
  filter();

  const heads = Array.from(table.tHead.rows[0].cells);
  heads.forEach((head, column) => {
    const sorter = document.createElement('button');
    sorter.type = 'button';
    sorter.textContent = head.textContent;
    head.replaceChildren(sorter);
    const isNumber = head.classList.contains('right');
    sorter.addEventListener('click', () => {
      const up = head.getAttribute('aria-sort') !== 'ascending';
      heads.forEach((other) => other.removeAttribute('aria-sort'));
      head.setAttribute('aria-sort', up ? 'ascending' : 'descending');
      const key = (row) => {
        const text = row.cells[column].textContent.trim();
        return isNumber ? Number.parseFloat(text) : text;
      };
      const keyed = rows.map((row, at) => [key(row), at]);
      // Rows without a figure stay at the end in both directions.
      const order = (a, b) => {
        if (!isNumber) return (up ? 1 : -1) * a[0].localeCompare(b[0], 'en', { numeric: true }) || a[1] - b[1];
        const [x, y] = [Number.isNaN(a[0]), Number.isNaN(b[0])];
        if (x || y) return x - y || a[1] - b[1];
        return (up ? 1 : -1) * (a[0] - b[0]) || a[1] - b[1];
      };
      keyed.sort(order);
      const sorted = document.createDocumentFragment();
      keyed.forEach(([, at]) => sorted.append(rows[at]));
      body.append(sorted);
    });
  });
})();
