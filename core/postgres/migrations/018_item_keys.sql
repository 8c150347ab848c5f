-- Items of closets have search keys as users have. The file is another one than theirs, so
-- that no transaction locks two large tables.
ALTER TABLE closet_items ADD COLUMN item_key text;
COMMENT ON COLUMN closet_items.item_key IS 'NULL until it is made.';

CREATE FUNCTION drop_stale_item_key() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    new.item_key := NULL;
    RETURN new;
  END
$$;
CREATE TRIGGER drop_stale_item_key BEFORE UPDATE OF item_name ON closet_items FOR EACH ROW
  WHEN (new.item_name <> old.item_name AND new.item_key IS NOT DISTINCT FROM old.item_key)
  EXECUTE FUNCTION drop_stale_item_key();

---- create above / drop below ----

DROP TRIGGER drop_stale_item_key ON closet_items;
DROP FUNCTION drop_stale_item_key;
ALTER TABLE closet_items DROP COLUMN item_key;
