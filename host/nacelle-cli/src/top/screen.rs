// SPDX-License-Identifier: Apache-2.0
//! The terminal: drawn when there is news, left as it was found.

use std::sync::atomic::Ordering;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use ratatui::Frame;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Modifier, Style};
use ratatui::text::Line;
use ratatui::widgets::{Paragraph, Row, Table};

use super::sample::{Change, Sample, Sampler};
use crate::device::stop_on_signal;
use crate::failure::Failure;

/// How long a key or a signal may go unnoticed.
const TICK: Duration = Duration::from_millis(50);
/// A device is said to be silent when it has not answered for so long after the interval.
const SILENT_AFTER: Duration = Duration::from_secs(2);
/// Columns between two of a table.
const GAP: u16 = 2;

/// What is shown.
struct View {
    title: String,
    change: Change,
    /// When the last answer came.
    last: Instant,
    interval: Duration,
    /// Rows of counters that are scrolled past.
    above: usize,
}

/// What a key means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wish {
    Quit,
    Up,
    Down,
    Nothing,
}

/// Draws until the user or a signal ends it.
pub(super) fn run(sampler: Sampler, interval: Duration) -> Result<(), Failure> {
    let stop = stop_on_signal()?;
    let view = View { title: sampler.title(), change: Change::default(), last: Instant::now(), interval, above: 0 };
    let samples = sample_in_background(sampler, interval);
    let mut terminal = ratatui::try_init().map_err(|error| unusable(&error))?;
    let outcome = watch(&mut terminal, view, &samples, || stop.load(Ordering::Relaxed));
    ratatui::restore();
    outcome.map_err(|error| unusable(&error))
}

fn unusable(error: &std::io::Error) -> Failure {
    Failure::usage(format!("cannot draw on the terminal: {error}"), "add --once for a table")
}

/// A device that hangs must not delay the keys, so a thread asks it. It ends when nobody takes its samples.
fn sample_in_background(mut sampler: Sampler, interval: Duration) -> Receiver<Sample> {
    let (sender, receiver) = mpsc::sync_channel(1);
    std::thread::spawn(move || {
        while sender.send(sampler.sample()).is_ok() {
            std::thread::sleep(interval);
        }
    });
    receiver
}

fn watch(
    terminal: &mut ratatui::DefaultTerminal,
    mut view: View,
    samples: &Receiver<Sample>,
    stopped: impl Fn() -> bool,
) -> std::io::Result<()> {
    while !stopped() {
        terminal.draw(|frame| view.draw(frame))?;
        while event::poll(Duration::ZERO)? {
            // After a change of the size the next drawing has the new one.
            let Event::Key(key) = event::read()? else { continue };
            match wish(&key) {
                Wish::Quit => return Ok(()),
                Wish::Up => view.above = view.above.saturating_sub(1),
                Wish::Down => view.above += 1,
                Wish::Nothing => {}
            }
        }
        match samples.recv_timeout(TICK) {
            Ok(sample) => {
                view.change.take(sample);
                view.last = Instant::now();
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Ok(()),
        }
    }
    Ok(())
}

fn wish(key: &KeyEvent) -> Wish {
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    match key.code {
        _ if key.kind == KeyEventKind::Release => Wish::Nothing,
        KeyCode::Char('q') | KeyCode::Esc => Wish::Quit,
        KeyCode::Char('c') if control => Wish::Quit,
        KeyCode::Up | KeyCode::Char('k') => Wish::Up,
        KeyCode::Down | KeyCode::Char('j') => Wish::Down,
        _ => Wish::Nothing,
    }
}

impl View {
    /// The first line: which device, and how it is.
    fn state(&self) -> String {
        let waited = self.last.elapsed();
        let silent = if waited > self.interval + SILENT_AFTER {
            format!(", no answer for {:.0} s", waited.as_secs_f64())
        } else {
            String::new()
        };
        format!("{}: {}{silent}", self.title, self.change.state())
    }

    fn draw(&mut self, frame: &mut Frame<'_>) {
        let pairs = self.change.pair_rows();
        let sockets = self.change.socket_rows();
        // The counters have the larger part of the screen.
        let for_pairs = if pairs.len() > 1 { (pairs.len() as u16 + 1).min(frame.area().height / 3) } else { 0 };
        let areas = Layout::vertical([
            Constraint::Length(2),
            Constraint::Fill(1),
            Constraint::Length(sockets.len() as u16),
            Constraint::Length(for_pairs),
            Constraint::Length(1),
        ]);
        let [head, counters, of_sockets, queue_pairs, keys] = areas.areas(frame.area());
        let mut lines = vec![Line::styled(self.state(), Modifier::BOLD)];
        lines.extend(self.change.error().map(|error| Line::raw(error.to_string())));
        frame.render_widget(Paragraph::new(lines), head);
        let rows = self.change.rows();
        let room = usize::from(counters.height).saturating_sub(1);
        self.above = self.above.min((rows.len() - 1).saturating_sub(room));
        draw_table(frame, counters, &rows, self.above);
        draw_table(frame, of_sockets, &sockets, 0);
        draw_table(frame, queue_pairs, &pairs, 0);
        let help = format!("every {} s   up, down: scroll   q: quit", self.interval.as_secs_f64());
        frame.render_widget(Paragraph::new(help), keys);
    }
}

/// A row of heads, and the others from `above` on.
fn draw_table(frame: &mut Frame<'_>, area: Rect, rows: &[Vec<String>], above: usize) {
    let Some((heads, rows)) = rows.split_first() else { return };
    let width = |column: usize| {
        let cells = rows.iter().chain([heads]).filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or_default() as u16
    };
    let widths = (0..heads.len()).map(|column| Constraint::Length(width(column)));
    let shown = rows.iter().skip(above).map(|row| Row::new(row.clone()));
    let heads = Row::new(heads.clone()).style(Style::new().add_modifier(Modifier::REVERSED));
    frame.render_widget(Table::new(shown, widths).header(heads).column_spacing(GAP), area);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_mean_what_the_last_line_says() {
        let press = |code, modifiers| wish(&KeyEvent::new(code, modifiers));
        let none = KeyModifiers::NONE;
        for (code, modifiers, expected) in [
            (KeyCode::Char('q'), none, Wish::Quit),
            (KeyCode::Esc, none, Wish::Quit),
            (KeyCode::Char('c'), KeyModifiers::CONTROL, Wish::Quit),
            (KeyCode::Char('c'), none, Wish::Nothing),
            (KeyCode::Up, none, Wish::Up),
            (KeyCode::Down, none, Wish::Down),
        ] {
            assert_eq!(press(code, modifiers), expected, "{code:?}");
        }
        let release = KeyEvent::new_with_kind(KeyCode::Char('q'), none, KeyEventKind::Release);
        assert_eq!(wish(&release), Wish::Nothing);
    }
}
