export interface PullProgress {
  file: string
  /** Bytes received so far, over all attempts. `bytesTotal` is the size of the file, if known. */
  bytesDone: number
  bytesTotal?: number
}

export interface PullOptions {
  /** Accepts the model's terms, if it has any. The acceptance is stored with its files. Default: false. */
  acceptLicence?: boolean
  /** Never uses the network. Default: true if `STEMWORK_OFFLINE` is set to anything but `0`. */
  offline?: boolean
  /**
   * Folder or base URL with all files under their names, used instead of their addresses. Default:
   * `STEMWORK_MODEL_MIRROR`.
   */
  mirror?: string
  /** Default: `modelCacheFolder()`. */
  cacheFolder?: string
  signal?: AbortSignal
  onProgress?(progress: PullProgress): void
  /** Milliseconds before a broken download is resumed; doubled after each attempt without progress. Default: 500. */
  retryDelayMs?: number
}
