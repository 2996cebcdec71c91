/* Pages opened from the disk may not read each other: results of a search then show titles alone. */
if (location.protocol === "file:") DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false;
