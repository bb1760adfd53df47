//! Trace context in the headers of the `http` crate, the same with and without the feature `enable`.

use http::{HeaderMap, HeaderName, HeaderValue};

use crate::Flow;

/// The name of the header.
const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

impl Flow {
    /// Creates a flow that began in another process, from the header `traceparent` of its request. Feature
    /// `http`.
    ///
    /// `None` if there is no such header, if there are several, or if it is not valid; see
    /// [`from_traceparent`](Self::from_traceparent).
    ///
    /// ```
    /// # use hairline::Flow;
    /// let mut headers = http::HeaderMap::new();
    /// assert!(Flow::from_headers(&headers).is_none());
    /// headers.insert("traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01".parse()?);
    /// assert_eq!(Flow::from_headers(&headers).map(|flow| flow.id()), Some(0x00f0_67aa_0ba9_02b7));
    /// # Ok::<(), http::header::InvalidHeaderValue>(())
    /// ```
    #[cfg_attr(docsrs, doc(cfg(feature = "http")))]
    #[must_use]
    pub fn from_headers(headers: &HeaderMap) -> Option<Self> {
        let mut all = headers.get_all(TRACEPARENT).iter();
        let (Some(header), None) = (all.next(), all.next()) else { return None };
        Self::from_traceparent(header.to_str().ok()?)
    }

    /// Sets the header `traceparent` of a request to [`to_traceparent`](Self::to_traceparent). Feature
    /// `http`.
    ///
    /// The headers do not change if the flow has no such text: its id is 0.
    ///
    /// ```
    /// # use hairline::Flow;
    /// let mut headers = http::HeaderMap::new();
    /// Flow::from_id(7).add_to_headers(&mut headers);
    /// assert_eq!(Flow::from_headers(&headers).map(|flow| flow.id()), Some(7));
    /// ```
    #[cfg_attr(docsrs, doc(cfg(feature = "http")))]
    pub fn add_to_headers(&self, headers: &mut HeaderMap) {
        let value = self.to_traceparent().map(|header| HeaderValue::from_str(header.as_str()));
        if let Some(Ok(value)) = value {
            // Without a panic if the map is full.
            let _ = headers.try_insert(TRACEPARENT, value);
        }
    }
}
