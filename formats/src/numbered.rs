//! Enums that stand in a trace as numbers.

/// An enum of one byte, and the way back from the number.
macro_rules! numbered {
    ($(#[$attribute:meta])* $name:ident { $($(#[$item_attribute:meta])* $item:ident = $number:literal,)* }) => {
        $(#[$attribute])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum $name { $($(#[$item_attribute])* $item = $number,)* }

        impl $name {
            /// The item with this number, if there is one.
            #[must_use]
            pub const fn from_number(number: u64) -> Option<Self> {
                match number {
                    $($number => Some(Self::$item),)*
                    _ => None,
                }
            }
        }
    };
}

pub(crate) use numbered;
