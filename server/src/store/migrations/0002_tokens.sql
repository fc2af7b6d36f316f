-- Who may use the API. A token itself is not stored.
CREATE TABLE tokens (
    name TEXT PRIMARY KEY NOT NULL,
    -- SHA-256 of the token, in hexadecimal digits.
    hash TEXT NOT NULL UNIQUE,
    -- Whose runs those are that are made with it.
    owner TEXT NOT NULL,
    -- Separated by commas.
    scopes TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    expires_at BIGINT,
    last_used_at BIGINT
);
