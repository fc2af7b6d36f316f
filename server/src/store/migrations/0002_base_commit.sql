-- Full hash of the old code's commit, which the first attempt resolved; all attempts use the same.
ALTER TABLE matrices ADD COLUMN base_commit TEXT;
