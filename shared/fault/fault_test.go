package fault_test

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/veneer-skins/veneer/shared/fault"
	"github.com/veneer-skins/veneer/shared/testenv"
	"github.com/veneer-skins/veneer/shared/testenv/cmptest"
)

func TestKindNames(t *testing.T) {
	t.Parallel()
	seen := map[string]fault.Kind{}
	for kind := fault.Internal; kind <= fault.Banned; kind++ {
		name := kind.String()
		other, exists := seen[name]
		testenv.Check(t, !exists && name != "", "kind %d is named %q, as kind %d is", kind, name, other)
		seen[name] = kind
	}
}

func TestOfFindsTheFaultInAChain(t *testing.T) {
	t.Parallel()
	inner := fault.New(fault.NotFound, "There is no texture %d.", 7)
	testenv.Equal(t, fault.Of(fmt.Errorf("set a skin: %w", inner)), inner, "Of(a wrapped fault)")
	testenv.Equal(t, fault.KindOf(errors.Join(io.EOF, inner)), fault.NotFound, "KindOf(a joined fault)")
}

func TestUnclassifiedErrorHidesCause(t *testing.T) {
	t.Parallel()
	cause := errors.New("the password is hunter2")
	got := fault.Of(cause)
	testenv.Check(t, got.Kind == fault.Internal && !strings.Contains(got.Message, "hunter2"),
		"Of(%v) is a %v fault saying %q", cause, got.Kind, got.Message)
	testenv.Check(t, errors.Is(got, cause) && strings.Contains(got.Error(), "hunter2"),
		"Of(%v) = %v, which lacks its cause", cause, got)
}

func TestField(t *testing.T) {
	t.Parallel()
	want := &fault.Error{
		Kind: fault.Invalid, Message: "The name has 65 characters.",
		Fields: map[string][]string{"name": {"The name has 65 characters."}},
	}
	cmptest.Same(t, fault.Field("name", "The %s has %d characters.", "name", 65), want, "Field")
}

func TestNewUnavailable(t *testing.T) {
	t.Parallel()
	got := fault.NewUnavailable("texture store", io.ErrUnexpectedEOF)
	want := &fault.Error{
		Kind: fault.Unavailable, Message: "The texture store cannot be reached at the moment. Please try again.",
		RetryAfter: time.Second, Cause: io.ErrUnexpectedEOF,
	}
	diff := cmp.Diff(*want, *got, cmpopts.EquateErrors())
	testenv.Check(t, diff == "", "NewUnavailable (-want +got):\n%s", diff)
	testenv.Is(t, got, io.ErrUnexpectedEOF, "the cause")
}
