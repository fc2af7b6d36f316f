-- Returns before the last retry. A retry starts `returns` over; no return counts as an attempt.
ALTER TABLE runs ADD COLUMN earlier_returns BIGINT NOT NULL DEFAULT 0;
ALTER TABLE matrices ADD COLUMN earlier_returns BIGINT NOT NULL DEFAULT 0;
ALTER TABLE gradings ADD COLUMN earlier_returns BIGINT NOT NULL DEFAULT 0;
