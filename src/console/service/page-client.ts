import { type ClientOptions, Connection } from '../../client/connection.js'
import { singleJobs, type SingleJobs } from '../../client/single-jobs.js'

/** The client of the pages, without the methods for many jobs, which they do not use. */
export type Client = SingleJobs

/** The part of a client that plays the song of one job. */
export type SongClient = Pick<Client, 'getJob' | 'waitForJob' | 'peaks' | 'download' | 'growing' | 'growingPeaks'>

export function pageClient(options: ClientOptions): Client {
  return singleJobs(new Connection(options), false)
}
