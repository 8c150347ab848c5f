package deploytest

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/veneer-skins/veneer/bench/system/stack"
	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/skin/artwork"
)

// client is an API client of a site, with connections of its own.
type client struct {
	baseURL, bearer string
	http            *http.Client
}

// requestTimeout is longer than any request may take.
const requestTimeout = 30 * time.Second

const jsonType = "application/json"

// do sends a request and returns the body of a successful response.
func (c client) do(ctx context.Context, method, path, contentType string, body []byte) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, method, c.baseURL+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", contentType)
	request.Header.Set("Authorization", "Bearer "+c.bearer)
	response, err := c.http.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	answer, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s %s: %d %s", method, path, response.StatusCode, answer)
	}
	return answer, err
}

// get sends a GET request.
func (c client) get(ctx context.Context, path string) ([]byte, error) {
	return c.do(ctx, http.MethodGet, path, "", nil)
}

// texture is the API's representation of a texture.
type texture struct {
	TID  int    `json:"tid"`
	Hash string `json:"hash"`
}

// upload uploads a skin that is different for each number.
func (c client) upload(ctx context.Context, number int) (texture, error) {
	sheet := artwork.Robot()
	binary.BigEndian.PutUint32(sheet.Pix, uint32(number)<<8|0xff) // a texel that no picture shows
	form := stack.SheetForm(fmt.Sprint("skin ", number), skin.Classic, sheet)
	answer, err := c.do(ctx, http.MethodPost, "/api/textures", stack.UploadType, form)
	if err != nil {
		return texture{}, err
	}
	var uploaded struct{ Data texture }
	err = json.Unmarshal(answer, &uploaded)
	return uploaded.Data, err
}
