package yggdrasil

import (
	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/shared/fault"
	"github.com/veneer-skins/veneer/shared/yggproto"
)

// FormatError is the httpserver.ErrorFormat of the public listener: the format of the protocol, with the
// names of core's own faults.
func FormatError(path []byte, f *fault.Error) (status int, body any) {
	status, body = yggproto.FormatError(path, f)
	if own, ok := body.(yggproto.ErrorBody); ok && f == core.ErrProfileAssigned {
		own.Error = yggproto.IllegalArgument
		return status, own
	}
	return status, body
}
