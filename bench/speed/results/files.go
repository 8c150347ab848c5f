package results

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// Write writes the run into a folder of its own below a directory, replacing an earlier run of the
// same day, commit and name, and returns its path: results.json with everything, table.md, and a
// plot as SVG and PNG of each kind of figures: ratios, latency, soak, and each sweep.
func (r *Run) Write(results string) (string, error) {
	if err := r.check(); err != nil {
		return "", err
	}
	folder := filepath.Join(results, r.Folder())
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return "", err
	}
	encoded, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return "", err
	}
	var table bytes.Buffer
	if err := r.WriteTable(&table); err != nil {
		return "", err
	}
	files := map[string][]byte{"results.json": append(encoded, '\n'), "table.md": table.Bytes()}
	for _, p := range r.plots() {
		if files[p.name+".svg"], err = p.svg(); err != nil {
			return "", fmt.Errorf("plot %s: %w", p.name, err)
		}
		if files[p.name+".png"], err = p.png(); err != nil {
			return "", fmt.Errorf("plot %s: %w", p.name, err)
		}
	}
	// A stale plot would be taken for one of this run.
	for _, pattern := range []string{"*.svg", "*.png"} {
		plots, _ := filepath.Glob(filepath.Join(folder, pattern)) // the pattern is well-formed
		for _, earlier := range plots {
			if err := os.Remove(earlier); err != nil {
				return "", err
			}
		}
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(folder, name), content, 0o644); err != nil {
			return "", err
		}
	}
	return folder, nil
}

// Read reads the results.json of a run.
func Read(path string) (*Run, error) {
	encoded, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	r := new(Run)
	if err := json.Unmarshal(encoded, r); err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	if err := r.check(); err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	return r, nil
}
