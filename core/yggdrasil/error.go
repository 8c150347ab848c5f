package yggdrasil

import (
	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/shared/fault"
	"github.com/veneer-skins/veneer/shared/httpserver"
)

// errorJSON is the body of an error.
type errorJSON struct {
	Error        string `json:"error"`
	ErrorMessage string `json:"errorMessage"`
}

// The names of errors that launchers act on. Others have the reason phrase of their status.
const (
	forbiddenOperation = "ForbiddenOperationException"
	illegalArgument    = "IllegalArgumentException"
)

// Formats of errors. A launcher asks for the password again after ForbiddenOperationException and
// nothing else, so authserver has that also for a token that is wrong, and for too many requests.
var (
	authErrors    = errorFormat(fasthttp.StatusForbidden, fasthttp.StatusForbidden)
	joinErrors    = errorFormat(fasthttp.StatusForbidden, fasthttp.StatusTooManyRequests)
	serviceErrors = errorFormat(fasthttp.StatusUnauthorized, fasthttp.StatusTooManyRequests)
)

// errorFormat returns the format of errors with the given statuses of a wrong token and of too many
// requests.
func errorFormat(unauthenticated, tooMany int) httpserver.ErrorFormat {
	statuses := map[fault.Kind]int{
		fault.Unauthenticated: unauthenticated, fault.TooMany: tooMany, fault.Invalid: fasthttp.StatusBadRequest, fault.Duplicate: fasthttp.StatusBadRequest,
	}
	return func(f *fault.Error) (int, any) {
		status, ok := statuses[f.Kind]
		if !ok {
			status = httpserver.StatusOf(f)
		}
		name := fasthttp.StatusMessage(status)
		switch {
		case status == fasthttp.StatusForbidden:
			name = forbiddenOperation
		case f == core.ErrProfileAssigned || f == core.ErrNoProfile:
			name = illegalArgument
		}
		return status, errorJSON{name, f.Message}
	}
}
