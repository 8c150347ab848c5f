package loopback_test

import (
	"net"
	"testing"

	"github.com/veneer-skins/veneer/bench/loopback"
)

// A server can listen at each address, and no other process gets it.
func TestFreeAddress(t *testing.T) {
	t.Parallel()
	given := map[string]bool{}
	for range 100 {
		address, err := loopback.FreeAddress()
		if err != nil {
			t.Fatal(err)
		}
		if given[address] {
			t.Errorf("%s is given twice", address)
		}
		given[address] = true
		listener, err := net.Listen("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		_ = listener.Close()
		_, port, err := net.SplitHostPort(address)
		if err != nil {
			t.Fatal(err)
		}
		if reserved, err := net.Listen("unix", "@veneer-port-"+port); err == nil {
			_ = reserved.Close()
			t.Errorf("%s is not reserved", address)
		}
	}
}
