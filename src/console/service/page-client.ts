import { type ClientOptions, Connection } from '../../client/connection.js'
import { singleJobs, type SingleJobs } from '../../client/single-jobs.js'

/** The client of the pages, which do nothing with many jobs in one request. */
export type Client = SingleJobs

/** What plays the song of one job. */
export type SongClient = Pick<Client, 'getJob' | 'waitForJob' | 'peaks' | 'download' | 'growing' | 'growingPeaks'>

export function pageClient(options: ClientOptions): Client {
  return singleJobs(new Connection(options), false)
}
