-- The span of the request by which it was asked for, as in the header traceparent of W3C Trace Context.
ALTER TABLE runs ADD COLUMN traceparent TEXT;
ALTER TABLE comparisons ADD COLUMN traceparent TEXT;
