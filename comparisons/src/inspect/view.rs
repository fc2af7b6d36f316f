//! What is on the screen, and what keys do to it. Nothing here knows the terminal.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout};
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, List, ListState, Paragraph};

use super::{Page, open};
use testwright_config::error::Result;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Key {
    Up,
    Down,
    First,
    Last,
    /// Of the text.
    PageUp,
    PageDown,
    Open,
    Back,
    Quit,
}

/// Lines that a text moves by.
const STEP: u16 = 10;

/// A page, and where in it the reader is.
#[derive(Debug, Default)]
struct Place {
    page: Page,
    list: ListState,
    /// Lines of the text that are above.
    scroll: u16,
}

/// Makes foreign text fit for a terminal.
type Visible = fn(&str) -> String;

pub struct View {
    /// The last one is shown.
    places: Vec<Place>,
    visible: Visible,
    /// Why a run could not be opened.
    problem: Option<String>,
    pub is_over: bool,
}

impl Place {
    fn new(page: Page) -> Self {
        let mut list = ListState::default();
        list.select(Some(0));
        Place {
            page,
            list,
            scroll: 0,
        }
    }

    fn select(&mut self, to: usize) {
        let last = self.page.items.len().saturating_sub(1);
        self.list.select(Some(to.min(last)));
        self.scroll = 0;
    }

    fn selected(&self) -> usize {
        self.list.selected().unwrap_or_default()
    }
}

impl View {
    pub fn new(page: Page, visible: Visible) -> Self {
        View {
            places: vec![Place::new(page)],
            visible,
            problem: None,
            is_over: false,
        }
    }

    pub fn press(&mut self, key: Key) {
        self.problem = None;
        let Some(place) = self.places.last_mut() else {
            return;
        };
        let at = place.selected();
        match key {
            Key::Up => place.select(at.saturating_sub(1)),
            Key::Down => place.select(at + 1),
            Key::First => place.select(0),
            Key::Last => place.select(usize::MAX),
            Key::PageUp => place.scroll = place.scroll.saturating_sub(STEP),
            Key::PageDown => place.scroll = place.scroll.saturating_add(STEP),
            Key::Open => {
                let folder = place.page.items.get(at).and_then(|item| item.opens.clone());
                let opened: Option<Result<Page>> = folder.map(|folder| open(&folder));
                match opened {
                    Some(Ok(page)) => self.places.push(Place::new(page)),
                    Some(Err(error)) => self.problem = Some(error.render()),
                    None => {}
                }
            }
            Key::Back if self.places.len() > 1 => drop(self.places.pop()),
            Key::Back | Key::Quit => self.is_over = true,
        }
    }

    pub fn draw(&mut self, frame: &mut Frame<'_>) {
        let visible = self.visible;
        let depth = self.places.len();
        let Some(place) = self.places.last_mut() else {
            return;
        };
        let [head, body, foot] = Layout::vertical([
            Constraint::Length(1),
            Constraint::Min(1),
            Constraint::Length(1),
        ])
        .areas(frame.area());
        let [left, right] =
            Layout::horizontal([Constraint::Percentage(40), Constraint::Percentage(60)])
                .areas(body);
        let bold = Style::new().add_modifier(Modifier::BOLD);
        frame.render_widget(Line::styled(visible(&place.page.title), bold), head);
        let titles = place.page.items.iter().map(|item| visible(&item.title));
        let list = List::new(titles)
            .block(Block::bordered())
            .highlight_style(Style::new().add_modifier(Modifier::REVERSED));
        frame.render_stateful_widget(list, left, &mut place.list);
        let text = place.page.items.get(place.selected());
        let text = text.map(|item| item.text.as_str()).unwrap_or_default();
        let frame_of_text = Block::bordered();
        let width = usize::from(frame_of_text.inner(right).width).max(1);
        let rows: Vec<Line<'_>> = text
            .lines()
            .flat_map(|line| wrapped(&visible(line), width))
            .map(Line::raw)
            .collect();
        let most = rows.len().saturating_sub(1);
        place.scroll = place.scroll.min(u16::try_from(most).unwrap_or(u16::MAX));
        let text = Paragraph::new(rows)
            .scroll((place.scroll, 0))
            .block(frame_of_text);
        frame.render_widget(text, right);
        let back = if depth > 1 { "Esc back" } else { "Esc end" };
        let help = format!("↑ ↓ move   PgUp PgDn scroll   Enter open   {back}   q end");
        let foot_line = match &self.problem {
            Some(problem) => Line::raw(visible(&problem.replace('\n', " "))),
            None => Line::raw(help),
        };
        frame.render_widget(foot_line, foot);
    }
}

/// A line as rows of at most so many columns, broken behind blanks where there are any.
fn wrapped(line: &str, width: usize) -> Vec<String> {
    let mut rows = Vec::new();
    let mut rest = line;
    loop {
        let (mut taken, mut end, mut blank) = (0, 0, None);
        for (at, character) in rest.char_indices() {
            let next = at + character.len_utf8();
            taken += Span::raw(&rest[at..next]).width();
            // A character that is wider than the row stands alone.
            if taken > width && at > 0 {
                break;
            }
            end = next;
            if character == ' ' {
                blank = Some(next);
            }
        }
        if end == rest.len() {
            rows.push(rest.to_owned());
            return rows;
        }
        let (row, others) = rest.split_at(blank.unwrap_or(end));
        rows.push(row.to_owned());
        rest = others;
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    use super::*;
    use crate::inspect::Item;

    fn screen(view: &mut View) -> String {
        let mut terminal = Terminal::new(TestBackend::new(60, 9)).unwrap();
        terminal.draw(|frame| view.draw(frame)).unwrap();
        terminal.backend().to_string()
    }

    #[test]
    fn lines_are_broken_behind_blanks_and_nothing_is_lost() {
        assert_eq!(wrapped("", 4), [""]);
        assert_eq!(wrapped("ab cd efghij", 4), ["ab ", "cd ", "efgh", "ij"]);
        assert_eq!(wrapped("測試測", 4), ["測試", "測"]);
        assert_eq!(wrapped("測試", 1), ["測", "試"]);
    }

    #[test]
    fn the_end_of_a_long_line_can_be_reached() {
        let text: String = (0..100).map(|n| format!("word{n} ")).collect();
        let page = Page {
            title: "A run".to_owned(),
            items: vec![Item {
                title: "one".to_owned(),
                text: text + "and the end",
                opens: None,
            }],
        };
        let mut view = View::new(page, str::to_owned);
        for _ in 0..10 {
            view.press(Key::PageDown);
            screen(&mut view);
        }
        let shown = screen(&mut view);
        assert!(shown.contains("and the end"), "{shown}");
    }

    #[test]
    fn keys_move_through_items_and_their_texts() {
        let items = ["one", "two", "three"].map(|name| Item {
            title: name.to_owned(),
            text: (1..=30).map(|n| format!("{name} {n}\n")).collect(),
            opens: (name == "three").then(|| "/no/such/run".into()),
        });
        let page = Page {
            title: "A run\u{1b}[31m".to_owned(),
            items: items.into(),
        };
        let mut view = View::new(page, |text| text.replace('\u{1b}', "?"));
        assert!(screen(&mut view).contains("A run?[31m") && screen(&mut view).contains("one 1 "));
        view.press(Key::Down);
        view.press(Key::PageDown);
        let shown = screen(&mut view);
        assert!(
            shown.contains("two 11") && !shown.contains("two 1 "),
            "{shown}"
        );
        view.press(Key::Last);
        view.press(Key::Down);
        assert!(screen(&mut view).contains("three 1 "));
        view.press(Key::Open);
        assert!(
            screen(&mut view).contains("failed to read /no/such/run"),
            "{}",
            screen(&mut view)
        );
        view.press(Key::First);
        assert!(screen(&mut view).contains("one 1 ") && !view.is_over);
        view.press(Key::Back);
        assert!(view.is_over);
    }
}
