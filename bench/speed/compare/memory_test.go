package compare

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"image"
	"image/png"
	"math/rand/v2"
	"net"
	"os"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/bench/speed/load"
	"github.com/veneer-skins/veneer/bench/system/site"
	"github.com/veneer-skins/veneer/shared/blobstore"
	"github.com/veneer-skins/veneer/shared/edgeproto"
	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/skin/artwork"
	"github.com/veneer-skins/veneer/shared/skin/skintest"
	"github.com/veneer-skins/veneer/shared/testenv"
)

const (
	// maxResident is the memory limit of an edge with its default settings.
	maxResident = 512 << 20
	// Flat avatars of this number of sizes, as WebP and as PNG.
	viewSizes, viewsOfTexture = 32, 64
	// jemalloc is where Debian's package libjemalloc2 puts it on this architecture.
	jemalloc = "/usr/lib/x86_64-linux-gnu/libjemalloc.so.2"
)

// BenchmarkMemory requests different pictures from an edge with its default settings, in Zipf order
// until it has rendered two million, and players that do not exist in between. It fails if the
// edge's memory exceeds the limit, or keeps growing. With -short there are a hundred times fewer
// pictures, which says little.
func BenchmarkMemory(b *testing.B) {
	distinct := 2_000_000
	if testing.Short() {
		distinct /= 100
	}
	var hashes []skin.Hash
	edge := newEdge(b, putTextures(b, 2*distinct/viewsOfTexture, &hashes), "EDGE_LOG_SAMPLE_RATE=0")
	address := "http://" + edge.Address(b, "public")
	warm := new(fasthttp.Client)
	// So that the cache of sample maps is as large as it ever is.
	for _, view := range slices.Concat(sized(8, 512, 8, "/avatar/hash/%s?3d&size={size}"), sized(16, 1024, 16, "/preview/hash/%s?height={size}")) {
		fetch(b, warm, fasthttp.StatusOK, address+fmt.Sprintf(view, hashes[0]))
	}

	// The most popular views are any of them.
	ranks, popular := load.NewZipf(len(hashes)*viewsOfTexture, 0.8), rand.New(rand.NewPCG(2, 3)).Perm(len(hashes)*viewsOfTexture)
	seen, total := make([]atomic.Bool, len(popular)), int64(distinct)
	var requests, remaining atomic.Int64
	remaining.Store(total)
	var clients sync.WaitGroup
	for v := range 32 {
		clients.Go(func() {
			client := new(fasthttp.Client)
			defer client.CloseIdleConnections()
			random := rand.New(rand.NewPCG(1, uint64(v)))
			for remaining.Load() > 0 && !b.Failed() {
				view := popular[ranks.Draw(random)]
				ok := fetch(b, client, fasthttp.StatusOK, fmt.Sprintf("%s/avatar/hash/%s%s?size=%d", address,
					hashes[view/viewsOfTexture], []string{".webp", ".png"}[view%2], 8*(1+view/2%viewSizes)))
				if ok && !seen[view].Swap(true) {
					remaining.Add(-1)
				}
				if n := requests.Add(1); n%4 == 0 {
					fetch(b, client, fasthttp.StatusNotFound, fmt.Sprintf("%s/avatar/player/no_%d", address, n))
				}
			}
		})
	}

	resident := []int64{0} // peak in each fortieth of the views
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for done := int64(0); done < total && !b.Failed(); <-tick.C {
		last := len(resident) - 1
		resident[last] = max(resident[last], edge.Resident(b))
		if done = total - remaining.Load(); done >= total*int64(len(resident))/40 {
			b.Logf("%8d views, %8d requests: at most %d MiB", done, requests.Load(), resident[last]>>20)
			resident = append(resident, 0)
		}
	}
	clients.Wait()
	half := resident[len(resident)/2:]
	third, fourth := slices.Max(half[:len(half)/2]), slices.Max(half[len(half)/2:])
	if most := slices.Max(resident); most >= maxResident {
		b.Errorf("the edge used %d MiB; want less than %d", most>>20, maxResident>>20)
	}
	if float64(fourth) > 1.02*float64(third) {
		b.Errorf("the edge used %d MiB in the last quarter, and %d in the one before; want no growth", fourth>>20, third>>20)
	}
	b.ReportMetric(float64(slices.Max(resident)>>20), "MiB")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkAllocator has an edge render pictures that were never requested before, with each
// allocator for C code: glibc, glibc with two arenas, and jemalloc where it is installed. It reports the
// edge's final and peak memory and the CPU time of a picture. With -short there are ten times fewer
// pictures, which says little.
func BenchmarkAllocator(b *testing.B) {
	pictures := int64(15_000)
	if testing.Short() {
		pictures /= 10
	}
	var views []string // that sites commonly show, with %s for a hash
	for _, format := range []string{".webp", ".png"} {
		for size := 16; size <= 256; size *= 2 {
			views = append(views, fmt.Sprintf("/avatar/hash/%%s%s?size=%d", format, size), fmt.Sprintf("/avatar/hash/%%s%s?3d&size=%d", format, size),
				fmt.Sprintf("/preview/hash/%%s%s?height=%d", format, 2*size))
		}
	}
	for _, allocator := range []struct{ name, setting string }{
		{"glibc", ""},
		{"two_arenas", "MALLOC_ARENA_MAX=2"},
		{"jemalloc", "LD_PRELOAD=" + jemalloc},
	} {
		b.Run(allocator.name, func(b *testing.B) {
			if _, err := os.Stat(jemalloc); allocator.name == "jemalloc" && err != nil {
				testenv.Skip(b, "libjemalloc2 is not installed")
			}
			settings := []string{"EDGE_LOG_SAMPLE_RATE=0"}
			if allocator.setting != "" {
				settings = append(settings, allocator.setting)
			}
			var hashes []skin.Hash
			edge := newEdge(b, putTextures(b, int(pictures)/len(views)+1, &hashes), settings...)
			address, idle := "http://"+edge.Address(b, "public"), edge.CPU(b)

			b.ResetTimer()
			var next atomic.Int64
			var clients sync.WaitGroup
			for range 16 {
				clients.Go(func() {
					client := new(fasthttp.Client)
					defer client.CloseIdleConnections()
					for i := next.Add(1) - 1; i < pictures && !b.Failed(); i = next.Add(1) - 1 {
						fetch(b, client, fasthttp.StatusOK, address+fmt.Sprintf(views[i%int64(len(views))], hashes[i/int64(len(views))]))
					}
				})
			}
			clients.Wait()
			b.StopTimer()

			resident, most := edge.Memory(b)
			b.ReportMetric(float64(resident>>20), "MiB")
			b.ReportMetric(float64(most>>20), "most-MiB")
			b.ReportMetric(float64((edge.CPU(b)-idle).Microseconds())/float64(pictures), "cpu-µs/picture")
			b.ReportMetric(float64(pictures)/b.Elapsed().Seconds(), "pictures/s")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// putTextures stores n skins that differ in one texel, and sets their hashes.
func putTextures(b *testing.B, n int, hashes *[]skin.Hash) func(files *blobstore.Store) map[edgeproto.Key]edgeproto.Mapping {
	b.Helper()
	return func(files *blobstore.Store) map[edgeproto.Key]edgeproto.Mapping {
		all := make([]skin.Hash, n)
		if err := parallel(n, 8*runtime.GOMAXPROCS(0), func(i int) error {
			sheet := artwork.Default()
			picture := &image.NRGBA{Pix: slices.Clone(sheet.Pix), Stride: 4 * sheet.Width, Rect: image.Rect(0, 0, sheet.Width, sheet.Height)}
			binary.BigEndian.PutUint32(picture.Pix, uint32(i)<<8|0xff) // visible in no picture
			var file bytes.Buffer
			if err := (&png.Encoder{CompressionLevel: png.BestSpeed}).Encode(&file, picture); err != nil {
				return err
			}
			all[i] = skin.HashOf(file.Bytes())
			return files.Put(b.Context(), all[i], file.Bytes())
		}); err != nil {
			b.Fatal(err)
		}
		known := map[edgeproto.Key]edgeproto.Mapping{}
		for i, hash := range all {
			known[edgeproto.HashKey(hash)] = texture(i+1, hash)
		}
		*hashes = all
		return known
	}
}

// fetch gets a URL and reports whether the answer has a status. The only other one allowed is 503,
// for an overloaded edge.
func fetch(b *testing.B, client *fasthttp.Client, want int, url string) bool {
	b.Helper()
	got, _, err := client.Get(nil, url)
	if err != nil || got != want && got != fasthttp.StatusServiceUnavailable {
		b.Errorf("%s: %d, %v; want %d", url, got, err, want)
	}
	return err == nil && got == want
}

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
			core := site.NewCore(t, blobstore.Config{URL: "file://" + t.TempDir()})
			core.Set(fmt.Sprint("CORE_UPLOAD_CONCURRENCY=", atOnce), "CORE_WORK_TIMEOUT=5m") // on a busy machine too
			for _, limit := range []string{"LIMIT_REQUESTS", "LIMIT_UPLOADS", "QUOTA_TEXTURES", "QUOTA_TEXTURE_BYTES", "QUOTA_CLOSET_ITEMS"} {
				core.Set("CORE_" + limit + "=0")
			}
			core.Start(t)
			u := uploaders{address: core.Address(t, "public"), users: site.SignIn(t, core, atOnce)}
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
	users   []site.SignedInUser
}

// send has all users upload a file concurrently. No upload is complete before all but the last byte
// of each was sent.
func (u uploaders) send(t *testing.T, file skintest.File) {
	t.Helper()
	form := site.UploadForm("N", file.Type, file.Data)
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
func (u uploaders) exchange(user site.SignedInUser, form []byte, begun, allBegun func()) (status int, body []byte, err error) {
	begin := sync.OnceFunc(begun)
	defer begin() // the others must not wait for a failed one
	conn, err := net.Dial("tcp", u.address)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = conn.Close() }()
	header := fmt.Sprintf("POST /api/textures HTTP/1.1\r\nHost: veneer.test\r\nConnection: close\r\nAuthorization: Bearer %s\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n",
		user.Bearer, site.UploadType, len(form))
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
