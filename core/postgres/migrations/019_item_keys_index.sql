-- core migrate and searches look for items without a key, of which there are none once they
-- are made. Only writes to closets wait for this, as those to users do for the index there.
CREATE INDEX closet_items_item_key_missing ON closet_items (uid, tid) WHERE item_key IS NULL;

---- create above / drop below ----

DROP INDEX closet_items_item_key_missing;
