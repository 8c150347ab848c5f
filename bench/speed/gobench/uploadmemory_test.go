//go:build !race

package gobench_test

import (
	"bufio"
	"fmt"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/bench/system/stack"
	"github.com/veneer-skins/veneer/shared/blobstore"
	"github.com/veneer-skins/veneer/shared/skin/skintest"
)

// No upload takes more than 64 MiB, whatever the file and the result. A core gets every file of the
// corpus several times at once, and its peak memory is compared with that before: so every
// allocation counts, garbage included.
func TestMemoryOfUploads(t *testing.T) {
	t.Parallel()

	accepted, refused := []skintest.File{}, []skintest.File{}
	for _, file := range skintest.Corpus() {
		if file.WantError == "" {
			accepted = append(accepted, file)
		} else {
			refused = append(refused, file)
		}
	}
	for name, files := range map[string][]skintest.File{"accepted": accepted, "refused": refused} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			const atOnce, bound = 4, 64 << 20
			core := stack.NewCore(t, blobstore.Config{URL: "file://" + t.TempDir()})
			core.Set("CORE_UPLOAD_CONCURRENCY", fmt.Sprint(atOnce))
			core.Set("CORE_WORK_TIMEOUT", "5m") // on a busy machine too
			for _, limit := range []string{"LIMIT_REQUESTS", "LIMIT_UPLOADS", "QUOTA_TEXTURES", "QUOTA_TEXTURE_BYTES", "QUOTA_CLOSET_ITEMS"} {
				core.Set("CORE_"+limit, "0")
			}
			core.Start(t)
			u := uploaders{address: core.Address(t, "public"), users: core.SignIn(t, atOnce)}
			core.AwaitReady(t)
			// What the program allocates for its first uploads, it allocates once.
			u.send(t, files[0])
			before, most := core.Memory(t)

			worst, longest, slowest := files[0].Name, time.Duration(0), ""
			for _, file := range files {
				began := core.CPU(t)
				u.send(t, file)
				if took := (core.CPU(t) - began) / atOnce; took > longest {
					longest, slowest = took, file.Name
				}
				if _, now := core.Memory(t); now > most {
					most, worst = now, file.Name
				}
			}
			took := (most - before) / atOnce
			t.Logf("%d files, %d concurrent uploads of each: most memory %.1f MiB per upload of %s; most CPU time %v for %s",
				len(files), atOnce, float64(took)/(1<<20), worst, longest, slowest)
			if took > bound {
				t.Errorf("each of %d uploads of %s uses %d bytes; want %d at most", atOnce, worst, took, bound)
			}
		})
	}
}

// uploaders are users that upload concurrently.
type uploaders struct {
	address string
	users   []stack.SignedInUser
}

// send has all users upload a file concurrently. No upload is complete before all but the last byte
// of each was sent.
func (u uploaders) send(t *testing.T, file skintest.File) {
	t.Helper()
	form := stack.UploadForm("N", file.Type, file.Data)
	var begun, ended sync.WaitGroup
	begun.Add(len(u.users))
	for _, user := range u.users {
		ended.Go(func() {
			status, body, err := u.exchange(user, form, begun.Done, begun.Wait)
			want := []int{fasthttp.StatusUnprocessableEntity}
			if file.WantError == "" {
				want = []int{fasthttp.StatusOK, fasthttp.StatusConflict} // several files have the same pixels
			}
			if err != nil || !slices.Contains(want, status) {
				t.Errorf("%s: %d %s, %v; want one of %v", file.Name, status, body, err, want)
			}
		})
	}
	ended.Wait()
}

// exchange sends a form, its last byte only when all have begun.
func (u uploaders) exchange(user stack.SignedInUser, form []byte, begun, allBegun func()) (status int, body []byte, err error) {
	begin := sync.OnceFunc(begun)
	defer begin() // the others must not wait for a failed one
	conn, err := net.Dial("tcp", u.address)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = conn.Close() }()
	header := fmt.Sprintf("POST /api/textures HTTP/1.1\r\nHost: veneer.test\r\nConnection: close\r\nAuthorization: Bearer %s\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n",
		user.Bearer, stack.UploadType, len(form))
	last := len(form) - 1
	if _, err := conn.Write(slices.Concat([]byte(header), form[:last])); err != nil {
		return 0, nil, err
	}
	begin()
	allBegun()
	if _, err := conn.Write(form[last:]); err != nil {
		return 0, nil, err
	}
	var response fasthttp.Response
	if err := response.Read(bufio.NewReader(conn)); err != nil {
		return 0, nil, err
	}
	return response.StatusCode(), response.Body(), nil
}
