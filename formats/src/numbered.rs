//! Enums that a trace stores as numbers.

/// Declares enums of one byte, each with a conversion from the number: `Item = number, "its documentation";`
macro_rules! numbered {
    ($(
        $(#[$attribute:meta])*
        $name:ident { $($(#[$item_attribute:meta])* $item:ident = $number:literal, $doc:literal;)* }
    )*) => {$(
        $(#[$attribute])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum $name { $(#[doc = $doc] $(#[$item_attribute])* $item = $number,)* }

        impl $name {
            /// Returns the item with this number, or `None`.
            #[must_use]
            pub const fn from_number(number: u64) -> Option<Self> {
                match number {
                    $($number => Some(Self::$item),)*
                    _ => None,
                }
            }
        }
    )*};
}

pub(crate) use numbered;
