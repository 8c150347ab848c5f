// Package fault classifies errors into kinds that a caller can act on. A fault has a kind for
// programs, a sentence for people, and a cause for the log.
package fault

import (
	"errors"
	"fmt"
	"time"
)

// Kind is the class of a fault. Every kind has one HTTP status and one code in the response's
// body; package httpserver has that table.
type Kind uint8

// The kinds of fault.
const (
	Internal           Kind = iota // a failure of the service; the caller learns nothing more
	Refused                        // a rule of the service forbids it
	Duplicate                      // it exists already
	NotFound                       // it does not exist
	Invalid                        // the input is well-formed, but wrong
	Malformed                      // the body cannot be parsed
	TooLarge                       // the body is larger than allowed
	HeaderTooLarge                 // the header block is larger than allowed
	UnsupportedMedia               // the body has an unsupported format
	PreconditionFailed             // a condition of the request is not met
	MethodNotAllowed               // the path exists, but not for this method
	Unauthenticated                // not signed in
	Forbidden                      // signed in, but not allowed
	ScoreTooLow                    // not enough score
	TooMany                        // too many requests
	Unavailable                    // a dependency is down; try again
	Timeout                        // the request did not arrive in time
	Banned                         // the account is banned
)

var names = [...]string{
	"internal", "refused", "duplicate", "not_found", "invalid", "malformed", "too_large", "header_too_large", "unsupported_media",
	"precondition_failed", "method_not_allowed", "unauthenticated", "forbidden", "score_too_low", "too_many", "unavailable", "timeout", "banned",
}

// String returns the kind's name in metrics and logs.
func (k Kind) String() string { return names[k] }

// Error is a fault: what the caller gets, and what only the log gets.
type Error struct {
	Kind    Kind
	Message string // a sentence for people

	// Fields says what is wrong with which field of the input.
	Fields map[string][]string
	// Data is added to the response's body, such as the existing thing of a Duplicate.
	Data any
	// RetryAfter is when to try again, if that helps.
	RetryAfter time.Duration
	// Cause is for the log and is never sent.
	Cause error
}

// New returns a fault of a kind with a sentence for people.
func New(kind Kind, format string, args ...any) *Error {
	return &Error{Kind: kind, Message: fmt.Sprintf(format, args...)}
}

// Field returns an Invalid fault about one field of the input.
func Field(name, format string, args ...any) *Error {
	sentence := fmt.Sprintf(format, args...)
	return &Error{Kind: Invalid, Message: sentence, Fields: map[string][]string{name: {sentence}}}
}

// NewUnavailable returns an Unavailable fault: the named dependency did not answer.
func NewUnavailable(dependency string, cause error) *Error {
	return &Error{
		Kind:       Unavailable,
		Message:    "The " + dependency + " cannot be reached at the moment. Please try again.",
		RetryAfter: time.Second,
		Cause:      cause,
	}
}

// Error returns the message and, for the log, the cause.
func (e *Error) Error() string {
	if e.Cause != nil {
		return e.Message + " (" + e.Cause.Error() + ")"
	}
	return e.Message
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Cause }

// Of returns the fault in err's chain. Any other error becomes the cause of an Internal
// fault.
func Of(err error) *Error {
	if f, ok := errors.AsType[*Error](err); ok {
		return f
	}
	return &Error{Kind: Internal, Message: "Something went wrong on our side.", Cause: err}
}

// CauseOf returns the cause of the fault in err's chain, for operators, and err itself if
// there is none.
func CauseOf(err error) error {
	if f, ok := errors.AsType[*Error](err); ok && f.Cause != nil {
		return f.Cause
	}
	return err
}

// KindOf returns the kind of the fault in err's chain, Internal if there is
// none.
func KindOf(err error) Kind { return Of(err).Kind }
