-- What calls of models used, all workers together: by minute, by day, by batch of runs. Reservations of calls in flight
-- included.
CREATE TABLE model_usage (
    scope TEXT PRIMARY KEY NOT NULL,
    requests BIGINT NOT NULL,
    tokens BIGINT NOT NULL,
    microdollars BIGINT NOT NULL,
    -- From when on nobody asks for it any more.
    ends_at BIGINT
);
