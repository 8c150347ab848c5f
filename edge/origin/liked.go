package origin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/veneer-skins/veneer/shared/edgeproto"
	"github.com/veneer-skins/veneer/shared/fault"
	"github.com/veneer-skins/veneer/shared/skin"
)

const (
	// likedTimeout is how long core may take to say what is liked: it looks at all
	// textures.
	likedTimeout = 30 * time.Second
	// maxLikedBytes is the most bytes of that answer that are read.
	maxLikedBytes = 80 * edgeproto.MaxLiked
)

// Liked returns the files of the textures that most closets hold, at most so many. It
// returns an Unavailable fault when core is away, and an error that says so when it is
// of an age in which it did not know what is liked.
func (c *Core) Liked(ctx context.Context, limit int) ([]skin.Hash, error) {
	ctx, cancel := context.WithTimeout(ctx, likedTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("%s%s?limit=%d", c.base, edgeproto.LikedPath, limit), http.NoBody)
	if err != nil {
		return nil, fmt.Errorf("make request for what is liked: %w", err)
	}
	response, err := c.send(request)
	switch {
	case errors.Is(err, statusError(http.StatusNotFound)):
		return nil, errors.New("core is older than this edge, and cannot say which textures are liked most")
	case err != nil:
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	var liked edgeproto.LikedTextures
	if err := json.NewDecoder(io.LimitReader(response.Body, maxLikedBytes)).Decode(&liked); err != nil {
		return nil, fault.NewUnavailable("core", fmt.Errorf("read what is liked: %w", err))
	}
	return liked.Hashes, nil
}
