//! Metrics as TensorBoard event files. In: rows of the metrics table. Out: the bytes of one file.
//! Must hold: the bytes follow from the rows alone, so any process may write the file again. A file is a sequence of
//! TFRecords (length, masked CRC-32C of it, data, masked CRC-32C of that), each an `Event` message of TensorFlow's
//! `event.proto`; the handful of its fields used here is encoded by hand.
//!
//! Wall times are seconds of training since the round began, because no clock is in the rows.

use crc_fast::{CrcAlgorithm, checksum};
use rollmill_schema::Metric;
use std::collections::BTreeMap;

/// One event for each step after `before`, at its `train/global_step`. `rows` are those of the round from its first step on.
pub fn event_file(rows: &[Metric], before: i64) -> Vec<u8> {
    let mut steps: BTreeMap<i64, Vec<&Metric>> = BTreeMap::new();
    rows.iter().for_each(|row| steps.entry(row.step).or_default().push(row));
    let mut file = record(&version());
    let mut wall = 0.0;
    for (number, rows) in &steps {
        let value = |name: &str| rows.iter().find(|row| row.name == name).and_then(|row| row.value);
        wall += value("train/seconds").unwrap_or(0.0);
        if *number <= before {
            continue;
        }
        let step = value("train/global_step").unwrap_or(0.0) as u64;
        file.extend(record(&event(wall, step, rows)));
    }
    file
}

fn record(data: &[u8]) -> Vec<u8> {
    let length = (data.len() as u64).to_le_bytes();
    [&length[..], &masked(&length).to_le_bytes(), data, &masked(data).to_le_bytes()].concat()
}

/// The mask keeps checksums of data that holds checksums from degenerating.
fn masked(data: &[u8]) -> u32 {
    let crc = checksum(CrcAlgorithm::Crc32Iscsi, data) as u32;
    crc.rotate_right(15).wrapping_add(0xa282_ead8)
}

/// `wall_time` 0 and `file_version`, as every file begins.
fn version() -> Vec<u8> {
    let mut event = double(1, 0.0);
    event.extend(bytes(3, b"brain.Event:2"));
    event
}

/// `wall_time`, `step` and a `summary` of one scalar a row.
fn event(wall: f64, step: u64, rows: &[&Metric]) -> Vec<u8> {
    let mut summary = vec![];
    for row in rows {
        if let Some(value) = row.value {
            let mut scalar = bytes(1, row.name.as_bytes());
            scalar.push(2 << 3 | 5); // simple_value, 32 bits
            scalar.extend((value as f32).to_le_bytes());
            summary.extend(bytes(1, &scalar));
        }
    }
    let mut event = double(1, wall);
    event.push(2 << 3); // step, a varint
    event.extend(varint(step));
    event.extend(bytes(5, &summary));
    event
}

fn double(field: u8, value: f64) -> Vec<u8> {
    [&[field << 3 | 1], &value.to_le_bytes()[..]].concat()
}

fn bytes(field: u8, data: &[u8]) -> Vec<u8> {
    let mut out = vec![field << 3 | 2];
    out.extend(varint(data.len() as u64));
    out.extend_from_slice(data);
    out
}

fn varint(mut value: u64) -> Vec<u8> {
    let mut out = vec![];
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(name: &str, step: i64, value: f64) -> Metric {
        Metric { name: format!("train/{name}"), step, value: Some(value), ..Metric::default() }
    }

    #[test] // the check value of CRC-32C in RFC 3720, B.4: 32 bytes of zeros give 0x8a9136aa
    fn the_checksum_is_the_standards() {
        assert_eq!(checksum(CrcAlgorithm::Crc32Iscsi, &[0; 32]), 0x8a91_36aa);
        assert_eq!(masked(&[0; 32]), 0x8a91_36aau32.rotate_right(15).wrapping_add(0xa282_ead8));
    }

    #[test]
    fn varints_as_in_the_protobuf_guide() {
        assert_eq!((varint(1), varint(150), varint(0)), (vec![1], vec![0x96, 1], vec![0]));
    }

    #[test]
    fn records_are_whole_and_in_the_order_of_steps() {
        let rows = [row("reward", 2, 0.5), row("global_step", 2, 12.0), row("reward", 1, 0.25), row("seconds", 1, 2.0)];
        let file = event_file(&rows, 0);
        let (mut at, mut events) = (0, vec![]);
        while at < file.len() {
            let length = u64::from_le_bytes(file[at..at + 8].try_into().unwrap()) as usize;
            let crc = |from: usize| u32::from_le_bytes(file[from..from + 4].try_into().unwrap());
            assert_eq!(crc(at + 8), masked(&file[at..at + 8]));
            let data = &file[at + 12..at + 12 + length];
            assert_eq!(crc(at + 12 + length), masked(data));
            events.push(data.to_vec());
            at += 16 + length;
        }
        assert_eq!(events.len(), 3);
        assert!(events[0].ends_with(b"brain.Event:2"));
        assert!(events[1].windows(12).any(|w| w == b"train/reward") && events[1][1..9] == 2f64.to_le_bytes());
        assert_eq!(events[2][9..11], [16, 12], "step 12");
        let later = event_file(&rows, 1);
        assert!(
            file.ends_with(&later[later.len() - 16 - events[2].len()..]) && later.len() < file.len(),
            "times go on"
        );
    }
}
