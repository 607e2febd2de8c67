#include "daemon/front/engines/replica.h"

#include "proto/limits.h"

bool qk_replica_is_ready(const qk_replica_t *replica) {
  return qk_supervisor_state(replica->supervisor) == QK_SUPERVISOR_READY;
}

int qk_replica_inflight(const qk_replica_t *replica) {
  int n = 0;
  for (int k = 0; k < QK_INFLIGHT_MAX; k++) n += replica->inflight[k].rhs != NULL;
  return n;
}

int qk_replica_busy(const qk_replica_t *replica) {
  const int slots = (int)qk_supervisor_info(replica->supervisor)->slots,
            inflight = qk_replica_inflight(replica);
  return inflight < slots ? inflight : slots;
}

int qk_replica_running(const qk_replica_t *replica) {
  return qk_replica_inflight(replica) + (replica->inflight[QK_CONTRACT_ENTRY].rhs != NULL) +
         (replica->inflight[QK_EIGEN_ENTRY].rhs != NULL);
}

/* ---- which one ------------------------------------------------------------------------------- */

static int free_entries(const qk_replica_room_t *room) {
  return room->takes && room->entries > room->there ? room->entries - room->there : 0;
}

static int free_slots(const qk_replica_room_t *room) {
  const int n = room->slots - room->there, most = free_entries(room);
  return n < 0 ? 0 : n < most ? n : most;
}

static bool completes_group(const qk_replica_room_t *room) {
  return free_slots(room) > 0 && (room->there + 1) % QK_SLOT_GROUP == 0;
}

/* Whether a right-hand side does better in a than in b. */
static bool is_better(const qk_replica_room_t *a, const qk_replica_room_t *b) {
  if (completes_group(a) != completes_group(b)) return completes_group(a);
  if (free_slots(a) != free_slots(b)) return free_slots(a) > free_slots(b);
  return free_entries(a) > free_entries(b);
}

int qk_replica_choose(const qk_replica_room_t room[], int n) {
  int best = -1;
  for (int r = 0; r < n; r++)
    if (free_entries(&room[r]) > 0 && (best < 0 || is_better(&room[r], &room[best]))) best = r;
  return best;
}

int64_t qk_replica_share(const qk_replica_room_t room[], int n, int r, int64_t waiting) {
  int64_t others = 0;
  for (int i = 0; i < n; i++) others += i == r ? 0 : free_entries(&room[i]);
  const int64_t own = free_entries(&room[r]);
  if (waiting >= own + others) return waiting - others;
  return waiting * own / (own + others);
}
