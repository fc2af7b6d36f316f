-- Work that went back to the queue because a machine lacked something: how often, and when it may be taken again.
ALTER TABLE runs ADD COLUMN returns BIGINT NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN not_before BIGINT NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN return_reason TEXT;
ALTER TABLE matrices ADD COLUMN returns BIGINT NOT NULL DEFAULT 0;
ALTER TABLE matrices ADD COLUMN not_before BIGINT NOT NULL DEFAULT 0;
ALTER TABLE matrices ADD COLUMN return_reason TEXT;
ALTER TABLE gradings ADD COLUMN returns BIGINT NOT NULL DEFAULT 0;
ALTER TABLE gradings ADD COLUMN not_before BIGINT NOT NULL DEFAULT 0;
ALTER TABLE gradings ADD COLUMN return_reason TEXT;

-- The small write by which a server shows that it can write.
CREATE TABLE write_probes (
    name TEXT PRIMARY KEY,
    content TEXT NOT NULL
);
