package httpserver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"
)

// operatorsListener is the name of the listener that the watchdog asks.
const operatorsListener = "operators"

// watchdogProbes is how many requests in turn must get no answer until a program counts as stuck.
const watchdogProbes = 6

// watchdogInterval is the time between two requests, and the longest time of one: a program that is
// stuck is ended after half a minute. Docker only marks a container as unhealthy, and systemd sees
// nothing at all.
const watchdogInterval = 5 * time.Second

// watch requests /livez until ctx ends, and returns an error when watchdogProbes requests in turn had
// no answer. A connection that is refused or closed is an answer.
func watch(ctx context.Context, address string, interval time.Duration) error {
	client := http.Client{Timeout: interval, Transport: &http.Transport{DisableKeepAlives: true}}
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for missed := 0; missed < watchdogProbes; {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		if missed++; isAlive(ctx, &client, address) {
			missed = 0
		}
	}
	return fmt.Errorf("the program is stuck: http://%s/livez had no answer for %s", address, watchdogProbes*interval)
}

// isAlive reports whether a request of /livez ended before the client's timeout.
func isAlive(ctx context.Context, client *http.Client, address string) bool {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/livez", http.NoBody)
	if err != nil {
		return true // no answer could be told from none
	}
	response, err := client.Do(request)
	if err == nil {
		_ = response.Body.Close()
		return true
	}
	timeout, isNet := errors.AsType[net.Error](err)
	return !isNet || !timeout.Timeout()
}
