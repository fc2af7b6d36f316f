-- Processes that work on runs. (`workers` is the queue's.) A row that is no longer refreshed is of a process that died.
CREATE TABLE worker_processes (
    name TEXT PRIMARY KEY NOT NULL,
    host TEXT NOT NULL,
    version TEXT NOT NULL,
    -- Runs that it works on at one time.
    slots BIGINT NOT NULL,
    started_at BIGINT NOT NULL,
    last_seen BIGINT NOT NULL,
    -- Ids of the runs that it works on, as a JSON array.
    runs TEXT NOT NULL
);
