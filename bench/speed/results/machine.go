package results

import (
	"fmt"
	"os"
	"regexp"
	"runtime"
	"strconv"
	"strings"
)

// Machine describes the machine of a run.
type Machine struct {
	Processor  string `json:"processor"`  // model
	Processors int    `json:"processors"` // that programs may use
	Memory     int64  `json:"memory_bytes"`
	Kernel     string `json:"kernel"` // as "Linux 6.18.5"
	Go         string `json:"go"`     // the version, as "go1.26.8"
}

// ThisMachine describes the machine that this program runs on. It supports Linux only.
func ThisMachine() (Machine, error) {
	m := Machine{Processor: runtime.GOARCH, Processors: runtime.NumCPU(), Go: runtime.Version()}
	processors, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return Machine{}, err
	}
	// ARM kernels do not report it.
	if found := modelPattern.FindSubmatch(processors); found != nil {
		m.Processor = string(found[1])
	}
	memory, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return Machine{}, err
	}
	found := memoryPattern.FindSubmatch(memory)
	if found == nil {
		return Machine{}, fmt.Errorf("/proc/meminfo has no MemTotal")
	}
	kibibytes, err := strconv.ParseInt(string(found[1]), 10, 64)
	if err != nil {
		return Machine{}, fmt.Errorf("read /proc/meminfo: %w", err)
	}
	m.Memory = kibibytes << 10
	kernel, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		return Machine{}, err
	}
	m.Kernel = "Linux " + strings.TrimSpace(string(kernel))
	return m, nil
}

var (
	modelPattern  = regexp.MustCompile(`(?m)^model name\s*: (.*)$`)
	memoryPattern = regexp.MustCompile(`(?m)^MemTotal:\s*(\d+) kB$`)
)

func (m Machine) String() string {
	return fmt.Sprintf("%d processors of an %s, %.1f GiB of memory, %s, %s", m.Processors, m.Processor, float64(m.Memory)/(1<<30), m.Kernel, m.Go)
}
