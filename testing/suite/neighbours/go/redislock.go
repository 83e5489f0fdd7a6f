package main

import (
	"context"
	"time"

	"github.com/bsm/redislock"
	"github.com/redis/go-redis/v9"
)

// ofRedislock is bsm/redislock itself.
type ofRedislock struct {
	client *redislock.Client
	store  *redis.Client
	held   *redislock.Lock
}

func newRedislock(clients []*redis.Client) library {
	return &ofRedislock{client: redislock.New(clients[0]), store: clients[0]}
}

// take acquires, and returns the value that the server then has.
func (w *ofRedislock) take(words []string, options *redislock.Options) (string, error) {
	ctx := context.Background()
	lease := milliseconds(words[1])
	// Without a deadline it gives up after the length of its lease.
	patient, cancel := context.WithTimeout(ctx, time.Hour)
	defer cancel()
	held, err := w.client.Obtain(patient, words[0], lease, options)
	// nil if not obtained, so that it cannot be released.
	w.held = held
	if err != nil {
		return "", err
	}
	return w.store.Get(ctx, words[0]).Result()
}

func (w *ofRedislock) run(verb string, words []string) (string, error) {
	ctx := context.Background()
	switch verb {
	case "acquire":
		return w.take(words, &redislock.Options{RetryStrategy: redislock.LinearBackoff(5 * time.Millisecond)})
	case "try":
		return w.take(words, nil)
	case "try-with-metadata":
		return w.take(words, &redislock.Options{Metadata: words[2]})
	case "try-as":
		return w.take(words, &redislock.Options{Token: words[2]})
	case "extend":
		if w.held == nil {
			return "", redislock.ErrLockNotHeld
		}
		return "", w.held.Refresh(ctx, milliseconds(words[0]), nil)
	case "release":
		return "", w.held.Release(ctx)
	default:
		panic("not a command: " + verb)
	}
}
