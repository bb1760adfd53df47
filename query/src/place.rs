//! Where rows come from: the columns `date`, `service` and `trace`.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, BooleanArray, StringArray};
use datafusion::arrow::datatypes::{DataType, Field, Schema};
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::catalog::Session;
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::Expr;
use datafusion::logical_expr::utils::conjunction;
use hairline_tables::Place;
use hairline_tables::sql::PARTITION;

/// The type of texts. Arrays of views are no faster here, and refer to much more memory than their rows need:
/// sorts and joins then did not fit.
pub(crate) const TEXT: DataType = DataType::Utf8;

/// The values of the columns `date`, `service` and `trace`, as texts: not encoded for a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Origin(pub(crate) [String; PARTITION.len()]);

impl From<&Place> for Origin {
    fn from(place: &Place) -> Self {
        Self([place.date.clone(), decoded(&place.service), place.trace.clone()])
    }
}

/// A part of a path without its encoding: `a%2Fb` is `a/b`. Null of Hive is the empty text.
pub(crate) fn decoded(text: &str) -> String {
    let bytes = text.as_bytes();
    let (mut out, mut at) = (Vec::with_capacity(bytes.len()), 0);
    while at < bytes.len() {
        let digits = bytes.get(at + 1..at + 3).and_then(|digits| std::str::from_utf8(digits).ok());
        let digits = digits.filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()));
        match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) if bytes[at] == b'%' => {
                out.push(byte);
                at += 3;
            }
            _ => {
                out.push(bytes[at]);
                at += 1;
            }
        }
    }
    String::from_utf8(out).unwrap_or_else(|_| text.to_owned())
}

/// The columns, as fields.
pub(crate) fn fields() -> [Field; PARTITION.len()] {
    PARTITION.map(|name| Field::new(name, TEXT, true))
}

/// The conditions of a query that only say where rows come from.
pub(crate) fn conditions(filters: &[Expr]) -> Option<Expr> {
    let only_place = |filter: &&Expr| {
        let columns = filter.column_refs();
        !columns.is_empty()
            && columns.iter().all(|column| PARTITION.contains(&&*column.name))
            && !filter.is_volatile()
    };
    conjunction(filters.iter().filter(only_place).cloned())
}

/// Which origins meet the conditions.
pub(crate) fn met(conditions: &Expr, origins: &[Origin], state: &dyn Session) -> Result<Vec<bool>> {
    let schema = Arc::new(Schema::new(fields().to_vec()));
    let column = |level: usize| -> ArrayRef {
        Arc::new(StringArray::from_iter_values(origins.iter().map(|origin| &origin.0[level])))
    };
    let batch = RecordBatch::try_new(Arc::clone(&schema), (0..PARTITION.len()).map(column).collect())?;
    let condition = state.create_physical_expr(without_tables(conditions)?, &DFSchema::try_from(schema)?)?;
    let found = condition.evaluate(&batch)?.into_array(origins.len())?;
    let Some(found) = found.as_any().downcast_ref::<BooleanArray>() else {
        return Ok(vec![true; origins.len()]);
    };
    Ok((0..found.len()).map(|row| found.is_valid(row) && found.value(row)).collect())
}

/// The expression with columns that name no table.
fn without_tables(expression: &Expr) -> Result<Expr> {
    use datafusion::common::Column;
    use datafusion::common::tree_node::{Transformed, TreeNode};

    let changed = expression.clone().transform(|part| {
        Ok(match part {
            Expr::Column(column) => Transformed::yes(Expr::Column(Column::new_unqualified(column.name))),
            part => Transformed::no(part),
        })
    })?;
    Ok(changed.data)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_a_path_is_read_as_the_name_it_was() {
        assert_eq!(decoded("web"), "web");
        assert_eq!(decoded("a%2Fb%20%C3%A4"), "a/b ä");
        assert_eq!(decoded("100%"), "100%");
        assert_eq!(decoded("%zz%+1%2"), "%zz%+1%2");
        assert_eq!(decoded("%FF"), "%FF", "no UTF-8");
    }
}
