-- Lists are filtered, and go on before an id; what ended long ago is looked for by when it ended.
CREATE INDEX runs_owner ON runs (owner, id);
CREATE INDEX matrices_status ON matrices (status, id);
CREATE INDEX matrices_owner ON matrices (owner, id);
CREATE INDEX matrices_repository ON matrices (repository, id);
CREATE INDEX matrices_ended_at ON matrices (ended_at);
-- As the status of a comparison is read.
CREATE INDEX comparisons_status ON comparisons (
    (COALESCE(status, CASE WHEN cancelled = 1 THEN 'cancelled' WHEN report IS NOT NULL THEN 'done' ELSE 'running' END)),
    id
);
CREATE INDEX comparisons_owner ON comparisons (owner, id);
CREATE INDEX comparisons_name ON comparisons (name, id);
CREATE INDEX comparisons_ended_at ON comparisons (ended_at);
CREATE INDEX gradings_owner ON gradings (owner, batch);

-- Those that commands made had no end so far.
UPDATE comparisons SET ended_at = created_at WHERE status IS NULL AND (cancelled = 1 OR report IS NOT NULL);
