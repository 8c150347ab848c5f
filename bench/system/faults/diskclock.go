package faults

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/veneer-skins/veneer/bench/system/site"
	"github.com/veneer-skins/veneer/bench/system/stack"
	"github.com/veneer-skins/veneer/shared/blobstore"
	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/skin/skintest"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// diskFull fills the disk of a separate core and edge, which store textures in a directory. The
// cluster's load continues meanwhile, but the row reports the traffic of the separate site.
func (h *harness) diskFull() {
	if os.Geteuid() != 0 {
		h.row.Skipped = "mounting a disk requires root"
		return
	}
	disk := h.Directory("textures.disk")
	if err := syscall.Mount("tmpfs", disk, "tmpfs", 0, "size=4m,mode=755"); err != nil {
		h.row.Skipped = fmt.Sprintf("nothing can be mounted: %v", err)
		return
	}
	h.Cleanup(func() { _ = syscall.Unmount(disk, syscall.MNT_DETACH) })
	conn := h.Conn()
	_, err := conn.Exec(h.Context(), "CREATE DATABASE small")
	_ = conn.Close(h.Context())
	testenv.Do(h, err)
	files := blobstore.Config{URL: "file://" + disk}
	core := site.NewCoreAt(h, files, strings.Replace(h.Cores[0].Setting("CORE_DATABASE_URL"), "/postgres?", "/small?", 1))
	core.Set("CORE_LIMIT_REQUESTS=0", "CORE_LIMIT_CHANGES=0", "CORE_LIMIT_UPLOADS=0")
	small := site.StartWith(h, core)
	user := site.SignIn(h, small.Core, 1)[0]

	ballast := filepath.Join(disk, "ballast")
	fill := func() {
		for size := 4 << 20; size > 0; size /= 2 { // until not even a byte fits
			file := testenv.Must(os.OpenFile(ballast, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600))(h)
			_, _ = file.Write(make([]byte, size))
			_ = file.Close()
		}
	}
	hits, misses, reads, writes := newCounts(), newCounts(), newCounts(), newCounts()
	var hashes []string
	request := func(t *counts, base, method, path, contentType string, body []byte) []byte {
		began := time.Now()
		status, content, err := call(h.writeLog.client, base, method, path, user.Bearer, contentType, body)
		if !t.count(status, err, time.Since(began)) {
			return nil
		}
		return content
	}
	round := func(n int) {
		form := site.SheetForm("uploaded", skin.Classic, skintest.Noise(uint64(n), 64, 64))
		if content := request(writes, small.CoreURL, http.MethodPost, "/api/textures", site.UploadType, form); content != nil {
			var answer site.Answer
			testenv.Do(h, json.Unmarshal(content, &answer))
			hashes = append(hashes, answer.Data.Hash)
		}
		if len(hashes) == 0 {
			h.Fatalf("nothing can be uploaded before the disk is full: %s", writes)
		}
		request(hits, small.EdgeURL, http.MethodGet, "/avatar/hash/"+hashes[0], "", nil)
		request(misses, small.EdgeURL, http.MethodGet, fmt.Sprintf("/avatar/hash/%s?size=%d", hashes[n%len(hashes)], 8*(1+n%64)), "", nil)
		request(reads, small.CoreURL, http.MethodGet, "/api/closet", "", nil)
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
	for _, t := range []*counts{hits, misses, reads, writes} {
		t.end()
	}
	if time.Since(writes.last) > time.Second {
		h.addProblem("uploads do not go on: %s", writes)
	}
	for _, hash := range hashes {
		if digest, _ := fetch(h.writeLog.client, small.EdgeURL, "/textures/"+hash); digest != hash {
			h.row.Lost++ // one upload
			h.logf("LOST: the file %s is served as %s", hash, digest)
		}
	}
	h.row.Standalone = &traffic{hits, misses, reads, writes}
	h.addNote("the traffic is that of the separate site, 20 requests a second of each kind; the comparison is of the cluster, which had no fault, and of the separate site's files")
}

// clockWrong sets a core's clock wrong by several offsets and checks which tokens work where: all
// of them everywhere, if core allows for the offset.
func (h *harness) clockWrong() {
	if h.WrongClock == "" {
		h.row.Skipped = "there is no core with an adjustable clock"
		return
	}
	wrong, right := h.Cores[0], h.Cores[1]
	at := func(p *stack.Process) string { return "http://" + p.Setting("CORE_LISTEN") }
	statusOf := func(p *stack.Process, bearer string) int {
		status, _, err := call(h.writeLog.client, at(p), http.MethodGet, "/api/user", bearer, "", nil)
		testenv.Do(h, err)
		return status
	}
	refresh := func(p *stack.Process, bearer string) (status int, token string) {
		status, content, err := call(h.writeLog.client, at(p), http.MethodPost, "/api/auth/refresh", bearer, "", nil)
		testenv.Do(h, err)
		_, token, _ = strings.Cut(string(content), `"token":"`)
		token, _, _ = strings.Cut(token, `"`)
		return status, token
	}
	original := wrong.UseBinary(h.WrongClock)
	for _, clock := range []struct {
		offset time.Duration
		want   []int // the statuses, in the order of the note
	}{
		{4 * time.Second, []int{200, 200, 200}},
		{10 * time.Minute, []int{200, 200, 401}},
		{-10 * time.Minute, []int{401, 401}},
	} {
		wrong.Kill(h)
		wrong.Set("WRONG_CLOCK=" + clock.offset.String())
		wrong.StartReady(h)
		p := h.signIn(1)[0]
		status, good := refresh(right, p.Bearer) // as new as possible: a core with a slow clock accepts old ones
		if status != http.StatusOK {
			h.Fatalf("refresh of a valid token: %d", status)
		}
		got := []int{statusOf(wrong, good)}
		span := fmt.Sprintf("%+.0f s", clock.offset.Seconds())
		status, token := refresh(wrong, good)
		if status == http.StatusOK {
			got = append(got, statusOf(wrong, token), statusOf(right, token))
			h.addNote("%s: a valid token is answered %d there; its refreshed token, %d there and %d elsewhere", span, got[0], got[1], got[2])
		} else {
			got = append(got, status)
			h.addNote("%s: a valid token is answered %d there, and its refresh %d", span, got[0], got[1])
		}
		if !slices.Equal(got, clock.want) {
			h.addProblem("at %s tokens are answered %d and not %d", span, got, clock.want)
		}
		if status != http.StatusOK {
			h.sleep(2 * time.Second)
			continue
		}
		if status, _, err := call(h.writeLog.client, at(wrong), http.MethodPost, "/api/auth/logout", token, "", nil); err != nil || status != http.StatusNoContent {
			h.addProblem("at %s signing out is answered %d, %v", span, status, err)
		}
		if status := statusOf(right, p.Bearer); status != http.StatusUnauthorized {
			h.row.Lost++
			h.logf("LOST: a token signed out where the clock is wrong is answered %d elsewhere", status)
		}
		h.sleep(2 * time.Second)
	}
	wrong.Kill(h)
	wrong.UseBinary(original)
	wrong.Start(h)
}
