-- Old runs are looked for by when they ended.
CREATE INDEX runs_ended_at ON runs (ended_at);
