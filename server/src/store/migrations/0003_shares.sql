-- Whose run it is, and to which comparison or other batch of one owner it belongs (empty: none).
ALTER TABLE runs ADD COLUMN owner TEXT NOT NULL DEFAULT 'local';
ALTER TABLE runs ADD COLUMN batch TEXT NOT NULL DEFAULT '';
-- The queue's message by which a worker has it.
ALTER TABLE runs ADD COLUMN ticket TEXT;
CREATE INDEX runs_waiting ON runs (status, owner, batch, id);
CREATE INDEX runs_ticket ON runs (ticket);

-- When an owner's batch was last given a worker, as a number that grows with each.
CREATE TABLE shares (
    owner TEXT NOT NULL,
    batch TEXT NOT NULL,
    turn BIGINT NOT NULL,
    PRIMARY KEY (owner, batch)
);
