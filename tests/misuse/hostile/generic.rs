//! A callsite is a static, which belongs to no type: its constants cannot depend on one.
trait Named {
    const NAME: &'static str;
    fn call() {
        hairline::trace_scope!("app", Self::NAME);
        hairline::trace_scope!("app", "named at run time", name: Self::NAME);
    }
}
fn call<T: Named>() {
    hairline::trace_instant!("app", T::NAME);
    hairline::trace_async!("app", T::NAME, n = 1);
}
fn main() {}
