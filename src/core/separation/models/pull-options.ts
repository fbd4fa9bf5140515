export interface PullProgress {
  file: string
  /** Bytes of the download so far, over all tries, and in all, if known. */
  bytesDone: number
  bytesTotal?: number
}

export interface PullOptions {
  /** Accepts the terms of a model that has any; remembered beside its files. Default: false. */
  acceptLicence?: boolean
  /** Forbids the network. Default: whether `STEMWORK_OFFLINE` is set to anything but `0`. */
  offline?: boolean
  /** Folder or base URL that has all files by their names, asked instead of their addresses. Default: `STEMWORK_MODEL_MIRROR`. */
  mirror?: string
  /** Default: `modelCacheFolder()`. */
  cacheFolder?: string
  signal?: AbortSignal
  onProgress?(progress: PullProgress): void
  /** Milliseconds before a broken download is taken up again; doubled each time that brings nothing. Default: 500. */
  retryDelayMs?: number
}
