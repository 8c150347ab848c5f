package edge

import (
	"cmp"
	"container/list"
	"net/netip"
	"slices"
	"time"
)

// quantum is the cost that a network may use in a round: about ten usual avatars. A network
// with one expensive picture waits for several rounds of the others.
const quantum = 5 * time.Millisecond

// fairQueue orders jobs by deficit round robin over client networks (Shreedhar and Varghese,
// 1995). Each round adds one quantum to the deficit of a network, which it keeps while it has
// jobs. Within a network the cheapest job is first, and the oldest of equally cheap ones. A
// network that is alone in the queue gets all of the workers.
type fairQueue struct {
	networks map[netip.Prefix]*network
	rounds   list.List // of *network, the next one first
	count    int       // of jobs
	sequence uint64
}

// network is the jobs of one client network.
type network struct {
	prefix  netip.Prefix
	element *list.Element // in rounds
	deficit time.Duration // cost that it may use now
	cost    time.Duration // of all its jobs
	jobs    []*job        // in the order in which they are served
}

// job is work that waits in a queue, runs, or has been rejected.
type job struct {
	requesters *requesters
	cost       time.Duration // estimated, on one core
	start      chan error    // receives nil when the work may start, or the fault that rejects it

	work func() error // run by a worker; nil: the caller does the work
	done chan error   // receives the result of work

	queue   *fairQueue // nil unless the job waits
	network *network
	order   uint64 // of arrival
}

// compareJobs orders the jobs of a network as they are served.
func compareJobs(a, b *job) int {
	return cmp.Or(cmp.Compare(a.cost, b.cost), cmp.Compare(a.order, b.order))
}

// push adds a job to the network among its requesters that has the least cost waiting.
func (q *fairQueue) push(j *job) {
	q.sequence++
	j.queue, j.order = q, q.sequence
	q.count++
	q.insert(j, q.leastLoaded(j.requesters.networks))
}

func (q *fairQueue) insert(j *job, of netip.Prefix) {
	n := q.networks[of]
	if n == nil {
		if q.networks == nil {
			q.networks = map[netip.Prefix]*network{}
		}
		n = &network{prefix: of}
		n.element = q.rounds.PushBack(n)
		q.networks[of] = n
	}
	j.network = n
	n.cost += j.cost
	at, _ := slices.BinarySearchFunc(n.jobs, j, compareJobs)
	n.jobs = slices.Insert(n.jobs, at, j)
}

// remove removes a job from its network. A network without jobs loses its deficit.
func (q *fairQueue) remove(j *job) {
	n := j.network
	at, _ := slices.BinarySearchFunc(n.jobs, j, compareJobs)
	n.jobs = slices.Delete(n.jobs, at, at+1)
	n.cost -= j.cost
	j.network = nil
	if len(n.jobs) == 0 {
		q.rounds.Remove(n.element)
		delete(q.networks, n.prefix)
	}
}

// drop removes a job from the queue.
func (q *fairQueue) drop(j *job) {
	q.remove(j)
	q.count--
	j.queue = nil
}

// pop removes and returns the next job. The queue must not be empty.
func (q *fairQueue) pop() *job {
	for {
		n, _ := q.rounds.Front().Value.(*network)
		if j := n.jobs[0]; j.cost <= n.deficit {
			n.deficit -= j.cost
			q.drop(j)
			return j
		}
		n.deficit += quantum
		q.rounds.MoveToBack(n.element)
	}
}

// reassign moves a waiting job to another network of its requesters, if less cost waits there.
func (q *fairQueue) reassign(j *job, to netip.Prefix) {
	if q.waiting(to) < j.network.cost-j.cost {
		q.remove(j)
		q.insert(j, to)
	}
}

// waiting returns the cost of a network's jobs.
func (q *fairQueue) waiting(of netip.Prefix) time.Duration {
	if n := q.networks[of]; n != nil {
		return n.cost
	}
	return 0
}

// leastLoaded returns the network with the least cost waiting.
func (q *fairQueue) leastLoaded(of []netip.Prefix) netip.Prefix {
	return slices.MinFunc(of, func(a, b netip.Prefix) int { return int(q.waiting(a) - q.waiting(b)) })
}

// mostLoaded returns the network with the most cost waiting, nil if the queue is empty.
func (q *fairQueue) mostLoaded() (most *network) {
	for _, n := range q.networks {
		if most == nil || n.cost > most.cost {
			most = n
		}
	}
	return most
}

// victim returns the job to be shed for a new one: the newest job of the most loaded
// network. It is nil if no network of the new job is less loaded, or if all jobs of the most
// loaded network are wanted by other networks as well.
func (q *fairQueue) victim(wantedBy []netip.Prefix) (newest *job) {
	most := q.mostLoaded()
	if most == nil || q.waiting(q.leastLoaded(wantedBy)) >= most.cost {
		return nil
	}
	for _, j := range most.jobs {
		if len(j.requesters.networks) == 1 && (newest == nil || j.order > newest.order) {
			newest = j
		}
	}
	return newest
}
