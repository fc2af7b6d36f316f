-- Matrices are taken as runs are: by tickets, in turn with what else waits.
ALTER TABLE matrices ADD COLUMN owner TEXT NOT NULL DEFAULT 'local';
ALTER TABLE matrices ADD COLUMN batch TEXT NOT NULL DEFAULT '';
ALTER TABLE matrices ADD COLUMN ticket TEXT;
ALTER TABLE matrices ADD COLUMN idempotency_key TEXT;
CREATE UNIQUE INDEX matrices_idempotency_key ON matrices (idempotency_key);
CREATE INDEX matrices_waiting ON matrices (status, owner, batch, id);
CREATE INDEX matrices_ticket ON matrices (ticket);

-- Ids of the matrices and gradings that a process works on, as a JSON array.
ALTER TABLE worker_processes ADD COLUMN tasks TEXT NOT NULL DEFAULT '[]';
