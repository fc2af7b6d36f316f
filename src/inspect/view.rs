//! What is on the screen, and what keys do to it. Nothing here knows the terminal.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout};
use ratatui::style::{Modifier, Style};
use ratatui::text::Line;
use ratatui::widgets::{Block, List, ListState, Paragraph, Wrap};

use super::{Page, open};
use crate::error::Result;

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
        let lines: Vec<Line<'_>> = text.lines().map(|line| Line::raw(visible(line))).collect();
        let most = u16::try_from(lines.len())
            .unwrap_or(u16::MAX)
            .saturating_sub(1);
        place.scroll = place.scroll.min(most);
        let text = Paragraph::new(lines)
            .wrap(Wrap { trim: false })
            .scroll((place.scroll, 0))
            .block(Block::bordered());
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
