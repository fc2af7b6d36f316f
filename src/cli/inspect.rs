//! `testwright inspect`: a run or a comparison in the terminal; as plain text where there is none.

use std::path::PathBuf;

use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};

use super::output;
use testwright_comparisons::inspect::{self, Key, View};
use testwright_config::error::{Error, Result};

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Folder of a run or of a comparison
    dir: PathBuf,
    /// Print it as text, on a terminal too
    #[arg(long)]
    plain: bool,
}

pub fn run(args: &Args) -> Result<()> {
    let page = inspect::open(&args.dir)?;
    if args.plain || !output::is_interactive() {
        output::out(inspect::plain(&page));
        return Ok(());
    }
    let mut view = View::new(page, |text| output::single_line(text).into_owned());
    let mut terminal = ratatui::init();
    let shown = show(&mut terminal, &mut view);
    ratatui::restore();
    shown.map_err(|error| Error::io("use the terminal", &error))
}

fn show(terminal: &mut ratatui::DefaultTerminal, view: &mut View) -> std::io::Result<()> {
    while !view.is_over {
        terminal.draw(|frame| view.draw(frame))?;
        let Event::Key(pressed) = event::read()? else {
            continue;
        };
        if pressed.kind != KeyEventKind::Press {
            continue;
        }
        let control = pressed.modifiers.contains(KeyModifiers::CONTROL);
        let key = match pressed.code {
            KeyCode::Char('c') if control => Key::Quit,
            KeyCode::Up | KeyCode::Char('k') => Key::Up,
            KeyCode::Down | KeyCode::Char('j') => Key::Down,
            KeyCode::Home | KeyCode::Char('g') => Key::First,
            KeyCode::End | KeyCode::Char('G') => Key::Last,
            KeyCode::PageUp | KeyCode::Char('b') => Key::PageUp,
            KeyCode::PageDown | KeyCode::Char(' ') => Key::PageDown,
            KeyCode::Enter | KeyCode::Right => Key::Open,
            KeyCode::Esc | KeyCode::Left | KeyCode::Backspace => Key::Back,
            KeyCode::Char('q') => Key::Quit,
            _ => continue,
        };
        view.press(key);
    }
    Ok(())
}
