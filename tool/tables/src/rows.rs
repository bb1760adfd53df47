//! Rows that become batches.

use std::collections::HashMap;
use std::io;
use std::ops::Range;

use crate::batch::{Batch, Data, Dictionary, Values};
use crate::schema::{Kind, TableId};
use crate::source::Sink;
use crate::wanted::Wanted;

/// The limit for the rows of a batch.
pub const MOST_ROWS: usize = 1 << 17;
/// The limit for the bytes of texts of a batch, after which it ends. Names are short; this is for arguments.
const MOST_TEXT: usize = 8 << 20;
/// The limit for one text, in bytes. Longer ones are cut.
const LONGEST: usize = 1 << 20;
/// The limit for keys of texts whose code is looked up without a hash.
const MOST_KEYS: usize = 1 << 20;

/// The rows of one table that are not in a batch yet.
#[derive(Debug)]
pub(crate) struct Rows {
    table: TableId,
    is_wanted: bool,
    columns: Vec<Option<Building>>,
    rows: usize,
    /// The track of the last row, if the next row may repeat its columns.
    track: Option<u32>,
    /// The columns that say the same in all rows of a track.
    of_track: Range<usize>,
    /// The number of rows whose columns of the track are not there yet.
    repeated: usize,
    /// The bytes of texts.
    text: usize,
    /// All rows so far.
    pub(crate) all: u64,
    /// The number of texts that were cut.
    pub(crate) cut: u64,
}

/// A column that grows.
#[derive(Debug)]
struct Building {
    data: Data,
    is_valid: Vec<bool>,
    has_null: bool,
    /// The code of each key, plus 1.
    by_key: Vec<u32>,
    by_text: HashMap<Box<str>, u32>,
}

impl Rows {
    pub(crate) fn new(table: TableId, wanted: &Wanted) -> Self {
        let all = table.table().columns.iter().enumerate();
        let columns = all.map(|(index, column)| {
            let data = match column.kind {
                Kind::Int => Data::Int(Vec::new()),
                Kind::Float => Data::Float(Vec::new()),
                Kind::Bool => Data::Bool(Vec::new()),
                Kind::Text => Data::Text { codes: Vec::new(), texts: Dictionary::default() },
            };
            let (by_key, by_text) = (Vec::new(), HashMap::new());
            let building = Building { data, is_valid: Vec::new(), has_null: false, by_key, by_text };
            wanted.has(table, index).then_some(building)
        });
        let (columns, is_wanted) = (columns.collect(), wanted.has_table(table));
        Self {
            table,
            is_wanted,
            columns,
            rows: 0,
            track: None,
            of_track: 0..0,
            repeated: 0,
            text: 0,
            all: 0,
            cut: 0,
        }
    }

    /// Whether the table is wanted.
    #[inline]
    pub(crate) fn is_wanted(&self) -> bool {
        self.is_wanted
    }

    /// Whether a column is wanted.
    #[inline]
    pub(crate) fn has(&self, column: usize) -> bool {
        self.columns[column].is_some()
    }

    #[inline]
    pub(crate) fn int(&mut self, column: usize, value: i64) {
        self.opt_int(column, Some(value));
    }

    #[inline]
    pub(crate) fn opt_int(&mut self, column: usize, value: Option<i64>) {
        if let Some(building) = &mut self.columns[column] {
            building.mark(value.is_some());
            if let Data::Int(values) = &mut building.data {
                values.push(value.unwrap_or(0));
            }
        }
    }

    pub(crate) fn opt_float(&mut self, column: usize, value: Option<f64>) {
        if let Some(building) = &mut self.columns[column] {
            building.mark(value.is_some());
            if let Data::Float(values) = &mut building.data {
                values.push(value.unwrap_or(0.0));
            }
        }
    }

    pub(crate) fn opt_bool(&mut self, column: usize, value: Option<bool>) {
        if let Some(building) = &mut self.columns[column] {
            building.mark(value.is_some());
            if let Data::Bool(values) = &mut building.data {
                values.push(value.unwrap_or(false));
            }
        }
    }

    /// Adds a text. In an optional column, the empty text is none.
    pub(crate) fn text(&mut self, column: usize, text: &str) {
        let is_none = text.is_empty() && self.table.table().columns[column].is_optional;
        self.opt_text(column, (!is_none).then_some(text));
    }

    pub(crate) fn opt_text(&mut self, column: usize, text: Option<&str>) {
        let Some(building) = &mut self.columns[column] else { return };
        building.mark(text.is_some());
        let text = text.map(|text| cut(text, &mut self.cut));
        let code = text.map_or(0, |text| building.code(text, &mut self.text));
        building.push_code(code);
    }

    /// Adds a text that has a number of its own in this column. `text` is asked for it once in each batch.
    #[inline]
    pub(crate) fn keyed<T: AsRef<str>>(&mut self, column: usize, key: u32, text: impl FnOnce() -> T) {
        let Some(building) = &mut self.columns[column] else { return };
        if let Some(&code @ 1..) = building.by_key.get(key as usize) {
            building.mark(true);
            building.push_code(code - 1);
            return;
        }
        let text = text();
        let text = text.as_ref();
        let is_none = text.is_empty() && self.table.table().columns[column].is_optional;
        building.mark(!is_none);
        if is_none {
            return building.push_code(0);
        }
        let code = building.code(cut(text, &mut self.cut), &mut self.text);
        building.push_code(code);
        let key = key as usize;
        if key < MOST_KEYS {
            if building.by_key.len() <= key {
                building.by_key.resize(key + 1, 0);
            }
            building.by_key[key] = code + 1;
        }
    }

    /// Whether this row is of the same track as the last one, so that these columns of it need not be added.
    /// Many events of a track follow one another.
    #[inline]
    pub(crate) fn repeats(&mut self, track: u32, of_track: &Range<usize>) -> bool {
        if self.track == Some(track) {
            self.repeated += 1;
            return true;
        }
        self.end_repeats();
        self.track = Some(track);
        self.of_track.clone_from(of_track);
        false
    }

    /// Adds what was to be repeated. The next row has all columns.
    pub(crate) fn end_repeats(&mut self) {
        self.track = None;
        let count = std::mem::take(&mut self.repeated);
        if count > 0 {
            self.columns[self.of_track.clone()]
                .iter_mut()
                .flatten()
                .for_each(|building| building.repeat(count));
        }
    }

    /// Ends a row. Passes a full batch to `sink`.
    #[inline]
    pub(crate) fn end_row(&mut self, sink: &mut dyn Sink) -> io::Result<()> {
        self.rows += 1;
        if self.rows >= MOST_ROWS || self.text >= MOST_TEXT { self.flush(sink) } else { Ok(()) }
    }

    /// Passes the remaining rows to `sink`.
    pub(crate) fn flush(&mut self, sink: &mut dyn Sink) -> io::Result<()> {
        if self.rows == 0 {
            return Ok(());
        }
        self.end_repeats();
        let rows = std::mem::take(&mut self.rows);
        self.all += rows as u64;
        self.text = 0;
        let order = self.order();
        let mut columns = Vec::with_capacity(self.columns.len());
        for building in &mut self.columns {
            columns.push(building.as_mut().map(|building| building.take(order.as_deref())));
        }
        let mut batch = Batch { table: self.table, rows, columns };
        let result = sink.batch(&mut batch);
        for (building, values) in self.columns.iter_mut().zip(batch.columns) {
            if let (Some(building), Some(values)) = (building, values) {
                building.use_again(values);
            }
        }
        result
    }

    /// The order of the rows by the column that sorts them. `None` if they are in order.
    fn order(&self) -> Option<Vec<u32>> {
        let sorted_by = self.table.table().sorted_by?;
        let Some(Building { data: Data::Int(keys), .. }) = &self.columns[sorted_by] else { return None };
        if keys.is_sorted() {
            return None;
        }
        let mut order: Vec<u32> = (0..keys.len() as u32).collect(); // at most MOST_ROWS
        order.sort_by_key(|row| keys[*row as usize]);
        Some(order)
    }
}

impl Building {
    /// Notes whether the next row has a value. Nothing is stored before the first row that has none.
    #[inline]
    fn mark(&mut self, is_valid: bool) {
        if !is_valid || self.has_null {
            self.mark_one(is_valid);
        }
    }

    fn mark_one(&mut self, is_valid: bool) {
        if !self.has_null {
            self.has_null = true;
            self.is_valid.resize(self.data.len(), true);
        }
        self.is_valid.push(is_valid);
    }

    /// Adds the last row again, so many times.
    fn repeat(&mut self, count: usize) {
        fn again<T: Copy>(values: &mut Vec<T>, count: usize) {
            if let Some(last) = values.last().copied() {
                values.resize(values.len() + count, last);
            }
        }
        match &mut self.data {
            Data::Int(values) => again(values, count),
            Data::Float(values) => again(values, count),
            Data::Bool(values) => again(values, count),
            Data::Text { codes, .. } => again(codes, count),
        }
        if self.has_null {
            again(&mut self.is_valid, count);
        }
    }

    #[inline]
    fn push_code(&mut self, code: u32) {
        if let Data::Text { codes, .. } = &mut self.data {
            codes.push(code);
        }
    }

    /// The code of a text in this batch.
    fn code(&mut self, text: &str, bytes: &mut usize) -> u32 {
        if let Some(code) = self.by_text.get(text) {
            return *code;
        }
        let Data::Text { texts, .. } = &mut self.data else { return 0 };
        let code = texts.push(text);
        *bytes += text.len();
        self.by_text.insert(text.into(), code);
        code
    }

    /// The values, in this order of rows. The column is empty after that.
    fn take(&mut self, order: Option<&[u32]>) -> Values {
        self.by_key.clear();
        self.by_text.clear();
        let empty = match &self.data {
            Data::Int(_) => Data::Int(Vec::new()),
            Data::Float(_) => Data::Float(Vec::new()),
            Data::Bool(_) => Data::Bool(Vec::new()),
            Data::Text { .. } => Data::Text { codes: Vec::new(), texts: Dictionary::default() },
        };
        let mut values = Values {
            data: std::mem::replace(&mut self.data, empty),
            is_valid: std::mem::take(&mut self.is_valid),
        };
        self.has_null = false;
        if let Some(order) = order {
            match &mut values.data {
                Data::Int(values) => arrange(values, order),
                Data::Float(values) => arrange(values, order),
                Data::Bool(values) => arrange(values, order),
                Data::Text { codes, .. } => arrange(codes, order),
            }
            if !values.is_valid.is_empty() {
                arrange(&mut values.is_valid, order);
            }
        }
        values
    }

    /// Takes back the memory of values that are not needed any more: pages that the kernel need not clear.
    fn use_again(&mut self, values: Values) {
        let Values { mut data, mut is_valid } = values;
        match &mut data {
            Data::Int(values) => values.clear(),
            Data::Float(values) => values.clear(),
            Data::Bool(values) => values.clear(),
            Data::Text { codes, texts } => {
                codes.clear();
                texts.bytes.clear();
                texts.offsets.clear();
                texts.offsets.push(0);
            }
        }
        if std::mem::discriminant(&data) == std::mem::discriminant(&self.data) {
            self.data = data;
        }
        is_valid.clear();
        self.is_valid = is_valid;
    }
}

fn arrange<T: Copy>(values: &mut Vec<T>, order: &[u32]) {
    *values = order.iter().map(|row| values[*row as usize]).collect();
}

/// The first bytes of a text that is too long, up to a whole character.
fn cut<'t>(text: &'t str, count: &mut u64) -> &'t str {
    if text.len() <= LONGEST {
        return text;
    }
    *count += 1;
    let mut end = LONGEST;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}
