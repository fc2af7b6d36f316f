-- Comparisons that a client asks a server for, and that a server sees to.
-- What was asked for, as JSON; none where a command compares.
ALTER TABLE comparisons ADD COLUMN request TEXT;
ALTER TABLE comparisons ADD COLUMN idempotency_key TEXT;
CREATE UNIQUE INDEX comparisons_idempotency_key ON comparisons (idempotency_key);
-- As of work; none where a command compares.
ALTER TABLE comparisons ADD COLUMN status TEXT;
ALTER TABLE comparisons ADD COLUMN ended_at BIGINT;
-- Why it came to no result.
ALTER TABLE comparisons ADD COLUMN message TEXT;
-- How often a server has taken it, and until when it has it.
ALTER TABLE comparisons ADD COLUMN attempt BIGINT NOT NULL DEFAULT 0;
ALTER TABLE comparisons ADD COLUMN claimed_until BIGINT NOT NULL DEFAULT 0;
CREATE INDEX comparisons_open ON comparisons (status, claimed_until);
