(() => {
  'use strict';
  const rows = Array.from(document.getElementById('all').tBodies[0].rows);
  const names = rows.map((row) => (row.cells[0].textContent + ' ' + row.cells[1].textContent).toLowerCase());
  const words = document.getElementById('words');
  const filter = () => {
    const wanted = words.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    rows.forEach((row, at) => {
      row.hidden = !wanted.every((word) => names[at].includes(word));
      shown += row.hidden ? 0 : 1;
    });
    document.getElementById('shown').textContent = shown + ' of ' + rows.length;
  };
  const form = document.getElementById('filters');
  form.hidden = false;
  form.addEventListener('input', filter);
  form.addEventListener('submit', (event) => event.preventDefault());
  filter();
})();
