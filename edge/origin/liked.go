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
	// likedTimeout is longer than the timeout of look-ups, as core scans all textures.
	likedTimeout = 30 * time.Second
	// maxLikedBytes bounds the response: a hash has 64 hexadecimal digits.
	maxLikedBytes = 80 * edgeproto.MaxLiked
)

// Liked returns the hashes of the most liked textures, those in the most closets, up to
// limit. It returns an Unavailable fault when core does not answer, and another error when
// core is too old to have this endpoint.
func (c *Core) Liked(ctx context.Context, limit int) ([]skin.Hash, error) {
	ctx, cancel := context.WithTimeout(ctx, likedTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("%s%s?limit=%d", c.base, edgeproto.LikedPath, limit), http.NoBody)
	if err != nil {
		return nil, fmt.Errorf("create request for liked textures: %w", err)
	}
	response, err := c.send(request)
	switch {
	case errors.Is(err, statusError(http.StatusNotFound)):
		return nil, errors.New("core is older than this edge, and has no list of the most liked textures")
	case err != nil:
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	var liked edgeproto.LikedTextures
	if err := json.NewDecoder(io.LimitReader(response.Body, maxLikedBytes)).Decode(&liked); err != nil {
		return nil, fault.NewUnavailable("core", fmt.Errorf("read liked textures: %w", err))
	}
	return liked.Hashes, nil
}
