-- What administrators have removed cannot be uploaded again. A core of the release before takes it.
CREATE TABLE refused_pixels (
  tid        bigint PRIMARY KEY,
  pixels     bytea NOT NULL UNIQUE CHECK (octet_length(pixels) = 32),
  name       text NOT NULL,
  type       text NOT NULL,
  refused_by bigint REFERENCES users ON DELETE SET NULL,
  refused_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX refused_pixels_refused_by ON refused_pixels (refused_by);
COMMENT ON TABLE refused_pixels IS 'Pixels of removed textures, which only administrators may upload, as textures of any type.';
COMMENT ON COLUMN refused_pixels.tid IS 'Of the removed texture.';
COMMENT ON COLUMN refused_pixels.pixels IS 'As in textures.';
COMMENT ON COLUMN refused_pixels.refused_by IS 'NULL when deleted, and for the program core.';

---- create above / drop below ----

DROP TABLE refused_pixels;
