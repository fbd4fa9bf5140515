import type { Redis } from 'ioredis'

/** Largest priority that BullMQ takes. */
const lastTurn = 2 ** 21

/**
 * Gives each reference its turn, as BullMQ's priority (lower is served first). An application's next reference is one turn
 * behind its last, or level with the first that waits, whichever is later: so the references of all applications are served in
 * rounds, one of each a round, and an application that was idle gets no arrears. This is start-time fair queueing
 * (Goyal, Vin, Cheng 1997) with jobs of equal size.
 *
 * The turn in service is read off the head of BullMQ's sorted set, whose scores are priority * 2^32 + a counter. When nothing
 * waits, turns begin at 1 again. A queue that does not run empty for two million rounds wraps; what waits then from before the
 * wrap is overtaken until the sweep rings for it anew.
 */
const script = `
local head = redis.call('ZRANGE', KEYS[1], 0, 0, 'WITHSCORES')
local served = 1
if #head == 0 then redis.call('DEL', KEYS[2], KEYS[3]) else served = math.floor(tonumber(head[2]) / 4294967296) end
local turns = {}
for place, app in ipairs(ARGV) do
  local turn = math.max(tonumber(redis.call('HGET', KEYS[2], app) or '0') + 1, served)
  if turn > ${lastTurn} then
    redis.call('DEL', KEYS[2])
    served = 1
    turn = 1
  end
  redis.call('HSET', KEYS[2], app, turn)
  turns[place] = turn
end
redis.call('PEXPIRE', KEYS[2], 86400000)
return turns`

/** @param keys BullMQ's set of prioritized jobs, the hash of each application's last turn, and one that is of no use once nothing waits. */
export async function takeTurns(
  redis: Redis,
  keys: { prioritized: string; turns: string; sizes: string },
  apps: readonly string[],
): Promise<number[]> {
  // One letter ahead, so that no application's name is an empty argument or a number.
  return (await redis.eval(
    script,
    3,
    keys.prioritized,
    keys.turns,
    keys.sizes,
    ...apps.map((app) => `a${app}`),
  )) as number[]
}
