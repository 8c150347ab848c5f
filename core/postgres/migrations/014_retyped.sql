-- A player's profile names the model of the skin, so a change of a texture's type
-- changes the profile, though not the player. A trigger dates it, so that cores of the
-- former revision do while both run.
ALTER TABLE textures ADD COLUMN retyped_at timestamptz;
COMMENT ON COLUMN textures.retyped_at IS 'When the type was changed last; NULL if it never was.';

CREATE FUNCTION date_texture_type() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    new.retyped_at = clock_timestamp();
    RETURN new;
  END
$$;
CREATE TRIGGER date_type BEFORE UPDATE OF type ON textures
  FOR EACH ROW WHEN (new.type <> old.type) EXECUTE FUNCTION date_texture_type();

---- create above / drop below ----

DROP TRIGGER date_type ON textures;
DROP FUNCTION date_texture_type;
ALTER TABLE textures DROP COLUMN retyped_at;
