//! Curves of several runs side by side, as one SVG: a panel a measure, a colour a run.

use super::curves::{Curves, Point};
use plotters::prelude::*;

type Drawn = Result<(), Box<dyn std::error::Error>>;

const COLUMNS: usize = 3;
const PANEL: (u32, u32) = (420, 260);
const LEGEND: u32 = 40;
/// Okabe and Ito's palette, which colour-blind readers can tell apart.
const COLOURS: [RGBColor; 6] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
];

/// The picture as SVG text.
pub fn draw(runs: &[(String, Curves)]) -> Result<String, Box<dyn std::error::Error>> {
    let mut titles: Vec<&str> = Vec::new();
    for title in runs.iter().flat_map(|(_, curves)| curves.iter().map(|(title, _)| title.as_str())) {
        if !titles.contains(&title) {
            titles.push(title);
        }
    }
    let rows = titles.len().div_ceil(COLUMNS).max(1);
    let size = (PANEL.0 * COLUMNS as u32, PANEL.1 * rows as u32 + LEGEND);
    let mut svg = String::new();
    {
        let root = SVGBackend::with_string(&mut svg, size).into_drawing_area();
        root.fill(&WHITE)?;
        let (legend, panels) = root.split_vertically(LEGEND);
        draw_legend(&legend, runs)?;
        for (area, title) in panels.split_evenly((rows, COLUMNS)).iter().zip(&titles) {
            let lines = runs.iter().enumerate().filter_map(|(at, (_, curves))| {
                let (_, line) = curves.iter().find(|(t, _)| t == title)?;
                Some((COLOURS[at % COLOURS.len()], line.as_slice()))
            });
            draw_panel(area, title, &lines.collect::<Vec<_>>())?;
        }
        root.present()?;
    }
    Ok(svg)
}

fn draw_legend<B: DrawingBackend>(area: &DrawingArea<B, plotters::coord::Shift>, runs: &[(String, Curves)]) -> Drawn
where
    B::ErrorType: 'static,
{
    for (at, (name, _)) in runs.iter().enumerate() {
        let (x, colour) = (20 + 220 * at as i32, COLOURS[at % COLOURS.len()]);
        area.draw(&Rectangle::new([(x, 14), (x + 24, 22)], colour.filled()))?;
        area.draw(&Text::new(name.clone(), (x + 32, 10), ("sans-serif", 16)))?;
    }
    Ok(())
}

fn draw_panel<B: DrawingBackend>(
    area: &DrawingArea<B, plotters::coord::Shift>,
    title: &str,
    lines: &[(RGBColor, &[Point])],
) -> Drawn
where
    B::ErrorType: 'static,
{
    let points = || lines.iter().flat_map(|(_, line)| line.iter());
    let ends = points().flat_map(|p| p.interval.map_or([p.value, p.value], |(low, high)| [low, high]));
    let (low, high) = ends.fold((f64::MAX, f64::MIN), |(low, high), v| (low.min(v), high.max(v)));
    let margin = ((high - low) * 0.08).max(1e-3);
    let last = f64::from(points().map(|p| p.round).max().unwrap_or(0));
    let mut chart = ChartBuilder::on(area)
        .caption(title, ("sans-serif", 15))
        .margin(8)
        .x_label_area_size(30)
        .y_label_area_size(48)
        .build_cartesian_2d(-0.3..last + 0.3, low - margin..high + margin)?;
    chart
        .configure_mesh()
        .light_line_style(WHITE)
        .x_labels(last as usize + 1)
        .x_label_formatter(&|x| format!("{x:.0}"))
        .y_label_formatter(&|y| format!("{y:.2}"))
        .x_desc("round")
        .draw()?;
    for (colour, line) in lines {
        let at = |p: &Point| f64::from(p.round);
        chart.draw_series(LineSeries::new(line.iter().map(|p| (at(p), p.value)), colour.stroke_width(2)))?;
        chart.draw_series(line.iter().map(|p| Circle::new((at(p), p.value), 3, colour.filled())))?;
        let whiskers = line.iter().filter_map(|p| p.interval.map(|(low, high)| (at(p), low, high)));
        chart
            .draw_series(whiskers.map(|(x, low, high)| PathElement::new(vec![(x, low), (x, high)], colour.mix(0.5))))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_run_has_a_line_in_every_panel_it_measured() {
        let line = |n: u32| (0..n).map(|round| Point { round, value: f64::from(round), interval: Some((0.0, 4.0)) });
        let curves = |titles: &[&str]| titles.iter().map(|t| (t.to_string(), line(3).collect())).collect::<Curves>();
        let runs = [("ppo".to_string(), curves(&["a", "b"])), ("grpo".to_string(), curves(&["b", "c & d"]))];
        let svg = draw(&runs).unwrap();
        assert!(["ppo", "grpo", "c &amp; d"].iter().all(|text| svg.contains(text)), "{svg}");
        assert_eq!(svg.matches("<circle").count(), 12);
        assert!(draw(&[("one".into(), vec![("flat".into(), line(1).collect())])]).is_ok(), "one point has no extent");
    }
}
