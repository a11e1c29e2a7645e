//! The prefix tree of some trajectories, laid flat. Parents stand before their children, so a tree without a branch is an
//! ordinary causal row; equal trajectories fall together.

use std::collections::HashMap;

/// A row of `tokens`, of which each but the first of a trajectory has a parent: the token before it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PackedRow {
    /// Token ids.
    pub tokens: Vec<i64>,
    /// Position of each token in its trajectory; it restarts after a branch.
    pub positions: Vec<i64>,
    /// Index of the token before it, in the row.
    pub parents: Vec<Option<usize>>,
    /// For each trajectory of this row: its index in the batch, and where in the row its tokens are, in order.
    pub paths: Vec<(usize, Vec<usize>)>,
}

impl PackedRow {
    /// True if every token follows the one before it, so that plain causal attention is right.
    pub fn is_chain(&self) -> bool {
        self.parents.iter().enumerate().all(|(at, parent)| *parent == at.checked_sub(1))
    }

    /// What each token may attend to: [T·T], true in row q, column k if k is q or before q in a trajectory.
    pub fn attend(&self) -> Vec<bool> {
        let length = self.tokens.len();
        let mut mask = vec![false; length * length];
        for at in 0..length {
            if let Some(parent) = self.parents[at] {
                mask.copy_within(parent * length..(parent + 1) * length, at * length);
            }
            mask[at * length + at] = true;
        }
        mask
    }
}

/// A row under construction, with an index from (parent, token) to the place of that token.
#[derive(Default)]
struct Builder {
    row: PackedRow,
    places: HashMap<(Option<usize>, i64), usize>,
}

impl Builder {
    /// How many places `tokens` would add.
    fn cost(&self, tokens: &[i64]) -> usize {
        let mut parent = None;
        for (at, &token) in tokens.iter().enumerate() {
            match self.places.get(&(parent, token)) {
                Some(&place) => parent = Some(place),
                None => return tokens.len() - at,
            }
        }
        0
    }

    fn insert(&mut self, index: usize, tokens: &[i64]) {
        let mut path = Vec::with_capacity(tokens.len());
        for (position, &token) in tokens.iter().enumerate() {
            let parent = path.last().copied();
            let next = self.row.tokens.len();
            let place = *self.places.entry((parent, token)).or_insert(next);
            if place == next {
                self.row.tokens.push(token);
                self.row.positions.push(position as i64);
                self.row.parents.push(parent);
            }
            path.push(place);
        }
        self.row.paths.push((index, path));
    }
}

/// Packs trajectories into rows of at most `budget` tokens. `items` are (index, group, tokens); only trajectories of one
/// group share a row. A single trajectory longer than the budget gets a row of its own. Order of groups and of items in a
/// group is kept.
pub fn pack<'a>(items: impl IntoIterator<Item = (usize, &'a str, &'a [i64])>, budget: usize) -> Vec<PackedRow> {
    let mut groups: Vec<Vec<(usize, &[i64])>> = vec![];
    let mut at: HashMap<&str, usize> = HashMap::new();
    for (index, group, tokens) in items {
        let place = *at.entry(group).or_insert(groups.len());
        if place == groups.len() {
            groups.push(vec![]);
        }
        groups[place].push((index, tokens));
    }
    groups.iter().flat_map(|group| pack_group(group, budget)).collect()
}

fn pack_group(group: &[(usize, &[i64])], budget: usize) -> Vec<PackedRow> {
    let (mut rows, mut open) = (vec![], Builder::default());
    for &(index, tokens) in group {
        let used = open.row.tokens.len();
        if used > 0 && used + open.cost(tokens) > budget {
            rows.push(std::mem::take(&mut open).row);
        }
        open.insert(index, tokens);
    }
    rows.push(open.row);
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: &[i64] = &[1, 2, 3, 4];
    const B: &[i64] = &[1, 2, 5];

    #[test]
    fn a_shared_prefix_stands_once_and_positions_restart() {
        let rows = pack([(0, "t", A), (1, "t", B), (2, "t", A)], 99);
        assert_eq!(rows.len(), 1);
        assert_eq!(rows[0].tokens, [1, 2, 3, 4, 5]);
        assert_eq!(rows[0].positions, [0, 1, 2, 3, 2]);
        assert_eq!(rows[0].paths, [(0, vec![0, 1, 2, 3]), (1, vec![0, 1, 4]), (2, vec![0, 1, 2, 3])]);
        let seen_by_5: Vec<bool> = rows[0].attend()[4 * 5..].to_vec();
        assert_eq!(seen_by_5, [true, true, false, false, true]);
        assert!(!rows[0].is_chain());
    }

    #[test]
    fn budget_and_groups_split_rows() {
        let rows = pack([(0, "t", A), (1, "u", A), (2, "t", B)], 4);
        assert_eq!(
            rows.iter().map(|r| r.paths.iter().map(|p| p.0).collect()).collect::<Vec<Vec<_>>>(),
            [[0], [2], [1]]
        );
        assert!(rows.iter().all(PackedRow::is_chain));
        assert_eq!(pack([(0, "t", A)], 1).len(), 1, "one trajectory over the budget stands alone");
    }
}
