package edge

import (
	"bufio"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/veneer-skins/veneer/edge/cache"
)

const (
	// KeepTimeout bounds how long pictures are written when an edge ends, and read when it starts.
	KeepTimeout = 5 * time.Second
	// keepBatch is how many pictures are restored before the cache has them: its buffer has 32,768 places.
	keepBatch = 4096
	// maxKeptPicture is the most bytes of a picture or file that is kept: a length that is damaged must not take all memory.
	maxKeptPicture       = 4 << 20
	keepName, unfinished = "pictures", ".unfinished"
)

// keepHeader begins the file of kept pictures. Pictures of another revision of the renderer could be other bytes.
func (p *Pictures) keepHeader() string {
	return fmt.Sprintf("veneer pictures 1 %s %s\n", p.revision, p.exactRevision)
}

// Keep writes the pictures that are requested most to a directory, up to a number of bytes, and returns how many. They
// replace those that the directory has.
func (p *Pictures) Keep(directory string, bytes int64) (n int, err error) {
	path := filepath.Join(directory, keepName)
	file, err := os.OpenFile(path+unfinished, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return 0, err
	}
	to := bufio.NewWriterSize(file, 1<<20)
	_, err = to.WriteString(p.keepHeader())
	deadline := time.Now().Add(KeepTimeout)
	for _, kept := range p.pictureCache.Hottest(bytes) {
		if err != nil || time.Now().After(deadline) {
			break
		}
		if len(kept.Value.body) > maxKeptPicture {
			continue
		}
		record := append([]byte{byte(len(kept.Key)), kept.Uses}, kept.Key...)
		record = append(record, kept.Value.etag[:]...)
		record = binary.BigEndian.AppendUint32(record, uint32(len(kept.Value.body)))
		record = append(record, kept.Value.body...)
		digest := sha256.Sum256(record)
		_, err = to.Write(append(record, digest[:]...))
		n++
	}
	if err = errors.Join(err, to.Flush(), file.Close()); err != nil {
		return 0, errors.Join(err, os.Remove(file.Name()))
	}
	return n, os.Rename(file.Name(), path)
}

// Restore caches the pictures that Keep wrote, if the renderer draws the same ones, and returns how many. It ends with an
// error at a record that is not whole, and removes what a Keep that was killed has left.
func (p *Pictures) Restore(directory string) (n int, err error) {
	path := filepath.Join(directory, keepName)
	if err := os.Remove(path + unfinished); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return 0, err
	}
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	defer func() { _ = file.Close() }()
	from := bufio.NewReaderSize(file, 1<<20)
	header := make([]byte, len(p.keepHeader()))
	if _, err := io.ReadFull(from, header); err != nil || string(header) != p.keepHeader() {
		return 0, nil // another revision wrote it
	}
	defer p.pictureCache.Wait()
	deadline := time.Now().Add(KeepTimeout)
	for read := 0; time.Now().Before(deadline); read++ {
		kept, err := readKept(from)
		switch {
		case err == io.EOF: //nolint:errorlint // that and no other: the file ends behind a record
			return n, nil
		case err != nil:
			return n, fmt.Errorf("%s: picture %d: %w", path, read+1, err)
		}
		if p.pictureCache.Restore(kept) {
			n++
		}
		if read%keepBatch == 0 {
			p.pictureCache.Wait()
		}
	}
	return n, fmt.Errorf("%s: %d pictures were read in %s, and the others left out", path, n, KeepTimeout)
}

// readKept reads a record. The error is io.EOF if there is none.
func readKept(from io.Reader) (kept cache.Kept[picture], err error) {
	const etagSize = len(kept.Value.etag)
	var head [2]byte
	if _, err := io.ReadFull(from, head[:]); err != nil {
		return kept, err
	}
	digest := sha256.New()
	digest.Write(head[:])
	from = io.TeeReader(from, digest)
	fixed := make([]byte, int(head[0])+etagSize+4)
	if _, err := io.ReadFull(from, fixed); err != nil {
		return kept, noEOF(err)
	}
	kept.Key, kept.Uses = fixed[:head[0]:head[0]], head[1]
	copy(kept.Value.etag[:], fixed[head[0]:])
	length := binary.BigEndian.Uint32(fixed[len(fixed)-4:])
	if head[0] > cache.MaxKeySize || length > maxKeptPicture {
		return kept, errors.New("its length is not that of a picture")
	}
	kept.Value.body = make([]byte, length)
	if _, err := io.ReadFull(from, kept.Value.body); err != nil {
		return kept, noEOF(err)
	}
	var want, got [sha256.Size]byte
	digest.Sum(want[:0])
	if _, err := io.ReadFull(from, got[:]); err != nil {
		return kept, noEOF(err)
	}
	if got != want {
		return kept, errors.New("its digest differs")
	}
	return kept, nil
}

// noEOF returns the error of a file that ends within a record.
func noEOF(err error) error {
	if err == io.EOF { //nolint:errorlint // io.ReadFull returns no other
		return io.ErrUnexpectedEOF
	}
	return err
}
