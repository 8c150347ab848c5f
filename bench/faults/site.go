package faults

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/veneer-skins/veneer/bench/system"
	"github.com/veneer-skins/veneer/shared/objects"
	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/skin/paint"
)

const createSmall = `CREATE DATABASE small`

// diskFull has a site of a core and an edge, with a directory of textures on a disk of
// its own, whose disk becomes full. The load of the cluster goes on beside it, and is
// not what the row tells of.
func (s *stage) diskFull() {
	if os.Geteuid() != 0 {
		s.row.Untried = "a disk of its own takes root"
		return
	}
	disk := s.Directory(s, "textures.disk")
	if err := syscall.Mount("tmpfs", disk, "tmpfs", 0, "size=4m,mode=755"); err != nil {
		s.row.Untried = fmt.Sprintf("nothing can be mounted: %v", err)
		return
	}
	s.Cleanup(func() { _ = syscall.Unmount(disk, syscall.MNT_DETACH) })
	conn := s.Conn(s)
	_, err := conn.Exec(s.Context(), createSmall)
	_ = conn.Close(s.Context())
	if err != nil {
		s.Fatal(err)
	}
	files := objects.Config{URL: "file://" + disk}
	core := system.NewCoreOn(s, files, strings.Replace(s.Cores[0].Setting("CORE_DATABASE_URL"), "/postgres?", "/small?", 1))
	core.Set("CORE_LIMIT_REQUESTS", "0")
	core.Set("CORE_LIMIT_CHANGES", "0")
	core.Set("CORE_LIMIT_UPLOADS", "0")
	site := system.StartWith(s, core)
	who := site.Core.SignIn(s, 1)[0]

	ballast := filepath.Join(disk, "ballast")
	fill := func() {
		for size := 4 << 20; size > 0; size /= 2 { // until not even a byte fits
			file, err := os.OpenFile(ballast, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
			if err != nil {
				s.Fatal(err)
			}
			_, _ = file.Write(make([]byte, size))
			_ = file.Close()
		}
	}
	hits, drawn, reads, writes := newTally(), newTally(), newTally(), newTally()
	var hashes []string
	ask := func(t *tally, base, method, path, contentType string, body []byte) []byte {
		began := time.Now()
		status, content, err := call(s.ledger.client, base, method, path, who.Bearer, contentType, body)
		switch took := time.Since(began); {
		case err != nil:
			t.wrong("no answer", took)
		case status != http.StatusOK:
			t.wrong(fmt.Sprint(status), took)
		default:
			t.right(took)
			return content
		}
		return nil
	}
	round := func(n int) {
		form := system.SheetForm("own", skin.Classic, paint.Noise(uint64(n), 64, 64))
		if content := ask(writes, site.API, http.MethodPost, "/api/textures", system.UploadType, form); content != nil {
			_, after, _ := strings.Cut(string(content), `"hash":"`)
			hashes = append(hashes, after[:64])
		}
		ask(hits, site.Images, http.MethodGet, "/avatar/hash/"+hashes[0], "", nil)
		ask(drawn, site.Images, http.MethodGet, fmt.Sprintf("/avatar/hash/%s?size=%d", hashes[n%len(hashes)], 8*(1+n%64)), "", nil)
		ask(reads, site.API, http.MethodGet, "/api/closet", "", nil)
	}
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	began := time.Now()
	filled := false
	for n := 0; time.Since(began) < 10*time.Second; n++ {
		switch since := time.Since(began); {
		case !filled && since > 2*time.Second:
			fill()
			filled = true
		case filled && since > 8*time.Second:
			_ = os.Remove(ballast)
		}
		round(n)
		<-tick.C
	}
	for _, t := range []*tally{hits, drawn, reads, writes} {
		t.end()
	}
	if time.Since(writes.last) > time.Second {
		s.miss("uploads do not go on: %s", writes)
	}
	for _, hash := range hashes {
		if shows := s.show(site.Images, "/textures/"+hash); shows != hash {
			s.row.Lost++ // it is one upload
			s.say("LOST: the file %s is shown as %s", hash, shows)
		}
	}
	s.row.Instead = &traffic{hits, drawn, reads, writes}
	s.note("the figures are those of that site, which was asked 20 times a second for each; those that compare are of the cluster, which was whole meanwhile, and of that site's files")
}

// clockWrong has a core's clock be wrong by several spans in turn, and tells whose tokens
// work where: everybody's everywhere, if the span is one that core allows for.
func (s *stage) clockWrong() {
	if s.WrongClock == "" {
		s.row.Untried = "there is no core whose clock can be wrong"
		return
	}
	wrong, right := s.Cores[0], s.Cores[1]
	at := func(p *system.Process) string { return "http://" + p.Setting("CORE_LISTEN") }
	asks := func(p *system.Process, bearer string) int {
		status, _, err := call(s.ledger.client, at(p), http.MethodGet, "/api/user", bearer, "", nil)
		if err != nil {
			s.Fatal(err)
		}
		return status
	}
	refresh := func(p *system.Process, bearer string) (status int, token string) {
		status, content, err := call(s.ledger.client, at(p), http.MethodPost, "/api/auth/refresh", bearer, "", nil)
		if err != nil {
			s.Fatal(err)
		}
		_, token, _ = strings.Cut(string(content), `"token":"`)
		token, _, _ = strings.Cut(token, `"`)
		return status, token
	}
	ordinary := wrong.Use(s.WrongClock)
	for _, clock := range []struct {
		by   time.Duration
		want []int // the statuses, in the order of the note
	}{
		{4 * time.Second, []int{200, 200, 200}},
		{10 * time.Minute, []int{200, 200, 401}},
		{-10 * time.Minute, []int{401, 401}},
	} {
		wrong.Kill(s)
		wrong.Set("WRONG_CLOCK", clock.by.String())
		wrong.Start(s)
		wrong.AwaitReady(s)
		p := s.ledger.take()
		p.void.Store(true)
		status, good := refresh(right, p.Bearer) // as new as can be: a core that is behind takes old ones
		if status != http.StatusOK {
			s.Fatalf("a good token's refresh is answered %d", status)
		}
		got := []int{asks(wrong, good)}
		span := fmt.Sprintf("%+.0f s", clock.by.Seconds())
		status, token := refresh(wrong, good)
		if status == http.StatusOK {
			got = append(got, asks(wrong, token), asks(right, token))
			s.note("%s: a good token is answered %d there; what its refresh gives, %d there and %d elsewhere", span, got[0], got[1], got[2])
		} else {
			got = append(got, status)
			s.note("%s: a good token is answered %d there, and its refresh %d", span, got[0], got[1])
		}
		if !slices.Equal(got, clock.want) {
			s.miss("at %s tokens are answered %d and not %d", span, got, clock.want)
		}
		if status != http.StatusOK {
			s.pass(2 * time.Second)
			continue
		}
		if status, _, err := call(s.ledger.client, at(wrong), http.MethodPost, "/api/auth/logout", token, "", nil); err != nil || status != http.StatusNoContent {
			s.miss("at %s signing out is answered %d, %v", span, status, err)
		}
		if status := asks(right, p.Bearer); status != http.StatusUnauthorized {
			s.row.Lost++
			s.say("LOST: who signed out where the clock is wrong is answered %d elsewhere", status)
		}
		s.pass(2 * time.Second)
	}
	wrong.Kill(s)
	wrong.Use(ordinary)
	wrong.Start(s)
}
